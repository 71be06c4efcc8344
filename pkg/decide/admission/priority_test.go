package admission_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
)

// The priority of a started gang can be changed: from then on it decides who may evict it,
// also a workload that was refused before. That it once was evicted for the other one does
// not matter any more.
func TestAnotherPriorityOfAStartedGangCounts(t *testing.T) {
	t.Parallel()
	policy := gpuPolicy(t, false, gpuQueue("q", 1, `"withinClusterQueue": "LowerPriority"`))
	s := admission.NewState(treeOf(t, policy))
	s.SetNode(nodeOf("n", 8, 1))
	first := enter(t, s, 0, "first q 5 1")
	if plan := admission.Decide(s, start); len(plan.Admissions) != 1 {
		t.Fatalf("it does not start: %+v", plan)
	}
	enter(t, s, 1, "second q 5 1")
	if plan := admission.Decide(s, start.Add(time.Minute)); len(plan.Evictions) != 0 {
		t.Fatalf("an equal one is evicted: %+v", plan.Evictions)
	}
	s.SetPriority(first, 4)
	if !s.Pending(start.Add(time.Minute)) {
		t.Error("nothing is to be decided")
	}
	plan := admission.Decide(s, start.Add(time.Minute))
	if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != first {
		t.Errorf("evictions are %+v, want that of %s", plan.Evictions, first)
	}
}
