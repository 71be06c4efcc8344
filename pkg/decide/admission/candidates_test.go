package admission_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
)

// Thousands of gangs may be candidates of each of many classes: to list one allocates nothing of
// its own. It is not parallel: it counts the process's allocations.
func TestACandidateAllocatesNothing(t *testing.T) {
	const gangs = 100
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`))))
	s.SetNode(nodeOf("n", 64, gangs))
	for i := range gangs {
		enter(t, s, i, fmt.Sprintf("g%d a 0 1", i))
	}
	if plan := decide(s); len(plan.Admissions) != gangs {
		t.Fatalf("%d of %d are admitted", len(plan.Admissions), gangs)
	}
	later := start.Add(time.Hour)
	found := admission.CandidatesFor(s, "a", 9, later)
	allocations := testing.AllocsPerRun(10, func() { admission.CandidatesFor(s, "a", 9, later) })
	if found != gangs || allocations > gangs/2 {
		t.Errorf("%d candidates take %.0f allocations, want at most %d for %d", found, allocations, gangs/2, gangs)
	}
}
