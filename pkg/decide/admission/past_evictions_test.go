package admission_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// An eviction looks at the gangs that have had to do with the one that goes, and at no others that
// gangs were evicted for before.
func TestAnEvictionConcernsTheGangsOfItsPast(t *testing.T) {
	t.Parallel()
	const gangs = 200
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`))))
	s.SetNode(nodeOf("n", 64, 1))
	enter(t, s, 0, "runs a 0 1")
	for i := range gangs {
		enter(t, s, 1+i, fmt.Sprintf("w%d a %d %d", i, i, 2+i)) // of shapes, and so of classes, of their own
	}
	now := start.Add(time.Hour)
	admission.Decide(s, start)
	admission.Decide(s, now)
	if blocked, _ := admission.Blocked(s); blocked != gangs {
		t.Fatalf("%d classes are blocked, want %d", blocked, gangs)
	}
	for i := range gangs {
		admission.NoteEvicted(s, workload.ID(fmt.Sprintf("w%d", i)), "gone")
	}
	if looked := admission.Exempt(s, "runs", now); looked != 0 {
		t.Errorf("%d are looked at when a gang goes that none has evicted", looked)
	}
	admission.NoteEvicted(s, "w1", "runs")
	admission.NoteEvicted(s, "runs", "w2")
	if looked := admission.Exempt(s, "runs", now); looked != 2 {
		t.Errorf("%d are looked at, want the one that evicted it before and the one that it evicted", looked)
	}
	s.Dequeue("w1")
	s.SetPriority("w2", 7)
	if looked := admission.Exempt(s, "runs", now); looked != 0 {
		t.Errorf("%d are looked at when the past of both is forgotten", looked)
	}
}
