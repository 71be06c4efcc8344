package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWhatIsLeftIsNamed: the reason of a workload that is torn down names what that waits for
// while it does, and the last one what stays.
func TestWhatIsLeftIsNamed(t *testing.T) {
	t.Parallel()
	const left = "RayCluster n/r, which has finalizer example.com/stuck"
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	report := func(left string, released bool) {
		s.Status(&event.GangStatus{
			Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Left: left, Released: released, Gone: released,
		}, s.now, s.now)
	}
	for _, step := range []struct{ left, want string }{
		{"", "cancelled on request"},
		{left, "cancelled on request; its removal waits for " + left},
		{left, "cancelled on request; its removal waits for " + left},
		{left + ", another", "cancelled on request; its removal waits for " + left + ", another"},
		{"", "cancelled on request"},
		{left, "cancelled on request; its removal waits for " + left},
	} {
		s.Flush()
		before := s.gang().Reason.Message
		report(step.left, false)
		if got := s.gang().Reason.Message; got != step.want {
			t.Errorf("the reason is %q, want %q", got, step.want)
		}
		if reported := len(s.Flush().Updated) > 0; reported != (before != step.want) {
			t.Errorf("from %q to %q: reported %v", before, step.want, reported)
		}
	}
	clear(s.pods)
	s.observe()
	s.step(time.Second)
	s.Flush()
	report(left, true)
	changes := s.Flush()
	if len(changes.Updated) != 1 {
		t.Fatalf("%d records are updated", len(changes.Updated))
	}
	last := changes.Updated[0]
	if want := "cancelled on request; left behind: " + left; last.Phase != workload.Cancelled || last.Reason.Message != want {
		t.Errorf("it ended as %s because of %q, want %q", last.Phase, last.Reason.Message, want)
	}
}
