package admission_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// Three gangs run: one of four GPUs that has run for ten hours, and two of two that have run
// for an hour, the second of which came last. One that needs four may evict the first or both
// others.
func TestVictimsByAnotherOrder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]workload.ID{
		"regret": {"late", "small"},
		"kueue":  {"late", "small"},
		"fewest": {"large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by, err := admission.ParseVictimOrder(name)
			if err != nil {
				t.Fatal(err)
			}
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 8, `"withinClusterQueue": "LowerPriority"`))))
			s.OrderVictims(by)
			s.SetNode(nodeOf("gpus", 12, 8))
			runs(s, "large", 0, 4, 0, start.Add(-10*time.Hour))
			runs(s, "small", 1, 2, 0, start.Add(-time.Hour))
			runs(s, "late", 2, 2, 0, start.Add(-50*time.Minute))
			enter(t, s, 3, "urgent a 1 4")
			var got []workload.ID
			for _, e := range admission.Decide(s, start).Evictions {
				got = append(got, e.Workload)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%v are evicted, want %v", got, want)
			}
		})
	}
	if _, err := admission.ParseVictimOrder("oldest"); err == nil {
		t.Error("an unknown order is taken")
	}
}

// By Kueue's order the gang that was admitted last goes, whatever it loses.
func TestVictimsAsKueueGoByAdmission(t *testing.T) {
	t.Parallel()
	for by, want := range map[admission.VictimOrder]workload.ID{admission.LeastRegret: "small", admission.AsKueue: "large"} {
		t.Run(fmt.Sprintf("order %d", by), func(t *testing.T) {
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 8, `"withinClusterQueue": "LowerPriority"`))))
			s.OrderVictims(by)
			s.SetNode(nodeOf("gpus", 12, 8))
			runs(s, "small", 0, 1, 0, start.Add(-2*time.Hour))
			runs(s, "large", 1, 7, 0, start.Add(-time.Hour))
			enter(t, s, 2, "urgent a 1 1")
			plan := admission.Decide(s, start)
			if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != want {
				t.Errorf("by order %d %+v are evicted, want %s", by, plan.Evictions, want)
			}
		})
	}
}
