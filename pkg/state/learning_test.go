package state

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWhatIsLearnedOutlivesTheLeader: starts, and returns after preemptions, are stored with
// the steps that were measured, and the next term begins with them.
func TestWhatIsLearnedOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	key := admission.LearnedKey{Queue: "q", Kind: "RayCluster", Size: 2}
	s := newStage(t, workload.Rules{}, 3)
	s.learned(t, "before the start")
	s.step(30 * time.Second)
	s.created(true)
	started := admission.Learned{LearnedKey: key, Starts: admission.Mean{Count: 1, Mean: 30 * time.Second}}
	s.learned(t, "after the start", started)
	s.evictNow(s.gang(), &workload.Reason{Kind: workload.ReasonPreempted, Message: "others"}, s.now)
	s.released()
	s.step(0)
	s.learned(t, "after a return at once", admission.Learned{LearnedKey: key, Starts: started.Starts, Returns: admission.Mean{Count: 1}})
	s.evictNow(s.gang(), &workload.Reason{Kind: workload.ReasonPreempted, Message: "others"}, s.now)
	s.released()
	s.now = s.now.Add(2 * time.Minute)
	s.step(0)
	returned := admission.Learned{LearnedKey: key, Starts: started.Starts, Returns: admission.Mean{Count: 2, Mean: time.Minute}}
	s.learned(t, "after a return in two minutes", returned)
	for _, cause := range []workload.ReasonKind{workload.ReasonDrained, workload.ReasonRequeued} {
		s.evictNow(s.gang(), &workload.Reason{Kind: cause, Message: "why"}, s.now)
		s.released()
		s.step(time.Minute)
	}
	s.learned(t, "after evictions for no other workload")
	s.evictNow(s.gang(), &workload.Reason{Kind: workload.ReasonPreempted, Message: "others"}, s.now)
	s.released()
	s.Hold(&event.WorkloadHold{Workload: gangID, By: "x"}, s.now)
	s.Hold(&event.WorkloadHold{Workload: gangID, By: "x", Resume: true}, s.now)
	s.step(time.Minute)
	s.is(workload.Admitted, "")
	s.learned(t, "after a hold")
	s.replaceLeader()
	if diff := cmp.Diff([]admission.Learned{returned}, s.admission.Learned()); diff != "" {
		t.Errorf("the next term has learned (-want +got):\n%s", diff)
	}
}

// learned compares what is to be stored since the last call.
func (s *stage) learned(t *testing.T, when string, want ...admission.Learned) {
	t.Helper()
	if diff := cmp.Diff(want, s.Flush().Learned); diff != "" {
		t.Errorf("%s, stored is (-want +got):\n%s", when, diff)
	}
}

// TestNoStartIsLearnedOfASilentCluster: no report has when its pods were ready.
func TestNoStartIsLearnedOfASilentCluster(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.step(10 * time.Second)
	s.gang().heardAgain = s.now
	s.run()
	s.is(workload.Running, "")
	if learned := s.Flush().Learned; len(learned) > 0 {
		t.Errorf("learned is %+v", learned)
	}
}

// TestALongWishMakesNoStartLonger: what others are taken to start in is bounded by the ready
// deadline of the queue, not by that which the workload asks for.
func TestALongWishMakesNoStartLonger(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.gang().Life.ReadyDeadline = seconds(4 * 3600)
	s.Flush()
	s.now = s.now.Add(2 * time.Hour)
	s.created(true)
	s.is(workload.Running, "")
	key := admission.LearnedKey{Queue: "q", Kind: "RayCluster", Size: 2}
	s.learned(t, "after a start of two hours", admission.Learned{LearnedKey: key, Starts: admission.Mean{Count: 1, Mean: time.Minute}})
}
