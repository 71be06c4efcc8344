package simulation_test

import (
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
