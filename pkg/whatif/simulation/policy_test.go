package simulation_test

import (
	"os"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/whatif/simulation"
)

// TestConservativeOfAnyDepth: the name of the policy says how many gangs have reservations.
func TestConservativeOfAnyDepth(t *testing.T) {
	t.Parallel()
	for name, depth := range map[string]int{"conservative-1": 1, "conservative-10": 10, "conservative-37": 37, "conservative-1000": quota.MaxDepth, "conservative": quota.MaxDepth} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, err := simulation.ParsePolicy(name)
			if err != nil || policy.Name != name || policy.Queue().Backfill.Depth != depth {
				t.Errorf("the policy is %+v, %v; want depth %d", policy, err, depth)
			}
		})
	}
}

// TestThePageHasEachPolicy: the table of docs/queues.md has each policy that can be simulated, and
// no other.
func TestThePageHasEachPolicy(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/queues.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n| policy, `--policy` |")
	table, _, ends := strings.Cut(table, "\n\n")
	if !found || !ends {
		t.Fatal("the page has no table of policies")
	}
	for _, policy := range simulation.Policies() {
		if !strings.Contains(table, "`"+policy.Name+"`") {
			t.Errorf("the table lacks %s", policy.Name)
		}
	}
	for _, row := range strings.Split(table, "\n")[2:] {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for i, name := range strings.Split(first, "`") {
			if i%2 == 0 {
				continue
			}
			if _, err := simulation.ParsePolicy(name); err != nil {
				t.Errorf("the table has %q: %v", name, err)
			}
		}
	}
}
