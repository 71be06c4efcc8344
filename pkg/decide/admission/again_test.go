package admission_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// runs starts a gang of queue a with one GPU for each pod, on node "gpus".
func runs(s *admission.State, id workload.ID, order int64, pods int, cpus int64, since time.Time) {
	s.Start(admission.Started{
		Workload: &workload.Workload{ID: id, Queue: "a", PodSets: []workload.PodSet{setOf("workers", pods, cpus, 1)}},
		Order:    order, Cluster: "c", Admitted: since,
		Flavors:    []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}},
		Placements: []workload.Placement{{PodSet: "workers", Node: "gpus", Pods: pods}},
	})
}

// Shares of a resource without quota are fractions of what the nodes have, so fewer nodes
// may make a share too large.
func TestTheLossOfANodeMayMakeAShareTooLarge(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{true, false} {
		t.Run(fmt.Sprintf("fair sharing %t", fair), func(t *testing.T) {
			s := admission.NewState(treeOf(t, gpuPolicy(t, fair, gpuQueue("a", 2, ""), gpuQueue("b", 2, `"reclaimWithinCohort": "Any"`))))
			s.SetNode(nodeOf("gpus", 12, 4))
			s.SetNode(nodeOf("other", 12, 0))
			runs(s, "x", 0, 3, 2, start.Add(-time.Hour)) // 1 of 4 GPUs too many, 6 of 24 CPUs
			enter(t, s, 1, "y b 0 3")                    // 1 of 4 GPUs too many
			if plan := admission.Decide(s, start); len(plan.Admissions)+len(plan.Evictions) > 0 {
				t.Fatalf("with all nodes the plan is %+v", plan)
			}
			s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "other"})
			if pending := s.Pending(start); pending != fair {
				t.Errorf("a decision is pending: %t; sharing is fair: %t", pending, fair)
			}
			if plan := admission.Decide(s, start); len(plan.Evictions) == 1 != fair {
				t.Errorf("with 6 of 12 CPUs in use the plan is %+v; sharing is fair: %t", plan, fair)
			}
		})
	}
}

// Whether the second of two gangs may be evicted can depend on which goes first.
// Their order, and so what is possible, does not change with time alone, though
// what they have to lose does.
func TestTimeAloneMakesNoEvictionPossible(t *testing.T) {
	t.Parallel()
	for _, passed := range []time.Duration{0, time.Minute, time.Hour} {
		t.Run(fmt.Sprintf("after %s", passed), func(t *testing.T) {
			s := admission.NewState(treeOf(t, gpuPolicy(t, true, gpuQueue("a", 0, ""),
				gpuQueue("b", 0, `"reclaimWithinCohort": "Any"}, "fairSharing": {"weight": "2"`), gpuQueue("c", 12, ""))))
			s.SetNode(nodeOf("gpus", 12, 9))
			runs(s, "small", 0, 1, 0, start.Add(-2*time.Minute)) // has lost more than the large one only for a while
			runs(s, "large", 1, 8, 0, start.Add(-5*time.Second))
			enter(t, s, 2, "y b 0 9")
			if plan := admission.Decide(s, start.Add(passed)); len(plan.Evictions) > 0 {
				t.Errorf("after %s %+v are evicted, and not at first", passed, plan.Evictions)
			}
		})
	}
}
