package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestATenantSeesItsPartOfAQueue: of a queue of several namespaces a submitter sees those that it
// may use, and the budgets of these and of the whole queue.
func TestATenantSeesItsPartOfAQueue(t *testing.T) {
	t.Parallel()
	budget := func(name, namespace string) query.Budget {
		return query.Budget{Budget: quota.Budget{Name: name, Queue: "q", Namespace: namespace}}
	}
	q := query.Queue{
		Name: "q", Namespaces: []string{"a", "b"}, PastUse: []workload.PastUse{{Namespace: "a"}, {Namespace: "b"}},
		Budgets:    []query.Budget{budget("of-a", "a"), budget("of-b", "b"), budget("of-all", "")},
		Submitters: []workload.Submitters{{Who: []string{"http/alice"}, Namespaces: []string{"a"}}, {Who: []string{"http/root"}}},
	}
	for name, c := range map[string]struct {
		who                 string
		namespaces, budgets []string
	}{
		"of one namespace": {"http/alice", []string{"a"}, []string{"of-a", "of-all"}},
		"of all":           {"http/root", []string{"a", "b"}, []string{"of-a", "of-b", "of-all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := q.ForTenant(c.who)
			var budgets, used []string
			for _, b := range seen.Budgets {
				budgets = append(budgets, b.Name)
			}
			for _, u := range seen.PastUse {
				used = append(used, u.Namespace)
			}
			if diff := cmp.Diff([][]string{c.namespaces, c.namespaces, c.budgets}, [][]string{seen.Namespaces, used, budgets}); diff != "" || seen.Submitters != nil {
				t.Errorf("%s; submitters %v", diff, seen.Submitters)
			}
		})
	}
	if len(q.Budgets) != 3 || q.Budgets[1].Name != "of-b" {
		t.Errorf("the queue has changed: %+v", q.Budgets)
	}
}
