package admission_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWhoMayEvictIsFoundByFew: thousands of gangs that one decision starts cost each
// blocked class no more than one of each queue, and the answer is that of comparing
// with all of them.
func TestWhoMayEvictIsFoundByFew(t *testing.T) {
	t.Parallel()
	const gangs, priorities, waiting = 5000, 4, 200
	policies := []string{
		`"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"`,
		`"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"`,
		`"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "Any"`,
		`"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 1}`,
	}
	for i, policy := range policies {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 100, policy), gpuQueue("b", 100, policy))))
			yes, no := 0, 0
			for _, n := range []int{1, 2, 5, gangs} {
				t.Run(fmt.Sprintf("%d gangs", n), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
					started := make([]admission.Started, n)
					for j := range started {
						w := &workload.Workload{ID: workload.ID(fmt.Sprintf("gang-%d", j)), Priority: int32(r.IntN(priorities))}
						started[j] = admission.Started{Workload: w, Order: r.Int64N(1000), Queue: []string{"a", "b"}[r.IntN(2)], Admitted: start}
					}
					kept, by := admission.Victims(s, start, started)
					if most := 2; kept > most {
						t.Errorf("%d of %d gangs are compared with, want %d at most", kept, n, most)
					}
					for range waiting {
						w := admission.Waiting{Workload: &workload.Workload{Priority: int32(r.IntN(priorities + 1))}, Order: r.Int64N(1000), Queue: []string{"a", "b"}[r.IntN(2)]}
						few, all := by(w)
						if few != all {
							t.Fatalf("priority %d, order %d of queue %s: may evict by few is %v, by all %d is %v", w.Workload.Priority, w.Order, w.Queue, few, n, all)
						}
						if all {
							yes++
						} else {
							no++
						}
					}
				})
			}
			if i > 0 && yes == 0 || no == 0 && i != 2 {
				t.Errorf("%d may evict, %d may not: that tells nothing", yes, no)
			}
		})
	}
}

// TestWhoIsNotProtectedIsNoNews: gangs whose minimum run time is over were there to be
// evicted when others were refused.
func TestWhoIsNotProtectedIsNoNews(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 100, `"withinClusterQueue": "LowerPriority"`))))
	old := admission.Started{Workload: &workload.Workload{ID: "old"}, Queue: "a", Admitted: start.Add(-time.Hour)}
	if kept, _ := admission.Victims(s, start, []admission.Started{old}); kept != 0 {
		t.Errorf("%d gangs are compared with, want none", kept)
	}
}
