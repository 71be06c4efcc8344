package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	rules := workload.Rules{Identities: []workload.Bound{
		{Who: []string{"nats/team-a", "http/a-*"}, User: "system:serviceaccount:team-a:submitter"},
		{Who: []string{"http/*"}, User: "people", Groups: []string{"staff"}},
	}}
	account := &workload.Identity{User: "system:serviceaccount:team-a:submitter", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"}}
	for _, c := range []struct {
		name      string
		rules     workload.Rules
		submitter string
		want      *workload.Identity
		bound     bool
	}{
		{"no identities", workload.Rules{}, "nats/team-a", nil, true},
		{"service account", rules, "nats/team-a", account, true},
		{"first that matches", rules, "http/a-robot", account, true},
		{"user", rules, "http/bob", &workload.Identity{User: "people", Groups: []string{"staff", "system:authenticated"}}, true},
		{"bound to none", rules, "nats/team-b", nil, false},
		{"without a name", rules, "nats", nil, false},
		{"by kubectl", rules, "kubernetes/c/bob", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, bound := c.rules.IdentityOf(c.submitter)
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
		want      []string
	}{
		{"message", workload.Rules{}, "nats/team-a", []string{"default"}},
		{"message without a name", workload.Rules{}, "", []string{"default"}},
		{"listed accounts", workload.Rules{Pods: workload.PodPolicy{ServiceAccounts: []string{"train"}}}, "nats/team-a", []string{"train"}},
		{"bound", workload.Rules{Identities: bound}, "http/bob", nil},
		{"by kubectl", workload.Rules{}, "kubernetes/c/bob", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, c.rules.PodsOf(c.submitter).ServiceAccounts); diff != "" {
				t.Errorf("service accounts (-want +got):\n%s", diff)
			}
		})
	}
}
