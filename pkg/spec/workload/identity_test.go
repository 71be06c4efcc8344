package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	rules := workload.Rules{Identities: []workload.Bound{
		{Who: []string{"nats/team-a", "http/a-*", "kubernetes/c/*"}, User: "system:serviceaccount:team-a:submitter"},
		{Who: []string{"http/*"}, User: "people", Groups: []string{"staff"}},
	}}
	account := &workload.Identity{User: "system:serviceaccount:team-a:submitter", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"}}
	for _, c := range []struct {
		name      string
		rules     workload.Rules
		submitter string
		moves     bool
		want      *workload.Identity
		bound     bool
	}{
		{"no identities", workload.Rules{}, "nats/team-a", false, nil, true},
		{"service account", rules, "nats/team-a", false, account, true},
		{"first that matches", rules, "http/a-robot", false, account, true},
		{"user", rules, "http/bob", false, &workload.Identity{User: "people", Groups: []string{"staff", "system:authenticated"}}, true},
		{"bound to none", rules, "nats/team-b", false, nil, false},
		{"without a name", rules, "nats", false, nil, false},
		{"by kubectl", rules, "kubernetes/c/bob", false, nil, true},
		{"by kubectl, and moves", rules, "kubernetes/c/bob", true, account, true},
		{"by kubectl, and moves without being bound", rules, "kubernetes/d/bob", true, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, bound := c.rules.IdentityOf(&workload.Workload{Submitter: c.submitter, Life: workload.Life{Moves: c.moves}})
			if diff := cmp.Diff(c.want, got); diff != "" || bound != c.bound {
				t.Errorf("bound %v, want %v; identity (-want +got):\n%s", bound, c.bound, diff)
			}
		})
	}
}

// A message whose submitter has no identity may name no service account that the
// queue does not list.
func TestPodsOf(t *testing.T) {
	t.Parallel()
	bound := []workload.Bound{{Who: []string{"http/*"}, User: "people"}}
	for _, c := range []struct {
		name      string
		rules     workload.Rules
		submitter string
		moves     bool
		want      []string
	}{
		{"message", workload.Rules{}, "nats/team-a", false, []string{"default"}},
		{"message without a name", workload.Rules{}, "", false, []string{"default"}},
		{"listed accounts", workload.Rules{Pods: workload.PodPolicy{ServiceAccounts: []string{"train"}}}, "nats/team-a", false, []string{"train"}},
		{"bound", workload.Rules{Identities: bound}, "http/bob", false, nil},
		{"by kubectl", workload.Rules{}, "kubernetes/c/bob", false, nil},
		{"by kubectl, and moves", workload.Rules{}, "kubernetes/c/bob", true, []string{"default"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, c.rules.PodsOf(&workload.Workload{Submitter: c.submitter, Life: workload.Life{Moves: c.moves}}).ServiceAccounts); diff != "" {
				t.Errorf("service accounts (-want +got):\n%s", diff)
			}
		})
	}
}
