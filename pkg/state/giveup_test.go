package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAGangGivesUpAWorker: the dispatcher is commanded to make the cluster smaller; what it
// reports of the size before that neither ends it nor asks for more places. The pod that goes
// is no loss, whether the pod or the size is reported first, and the place is free when both
// are, and the dispatcher has confirmed that it sends none there. The gang runs on.
func TestAGangGivesUpAWorker(t *testing.T) {
	t.Parallel()
	for name, podFirst := range map[string]bool{"the pod goes first": true, "the size is reported first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, 3)
			s.created(true)
			s.sizes(2)
			s.another("next")
			s.Flush()
			left := s.place("workers")
			s.sizing.giveUp(s.gang(), admission.Shrink{
				Workload: gangID, PodSets: []workload.PodSet{{Name: "workers", Count: 1}}, Leave: []workload.Placement{{PodSet: "workers", Node: left, Pods: 1}},
				Reason: workload.Reason{Kind: workload.ReasonShrunk, Message: "for another"},
			}, s.now)
			command := s.commanded()
			if command == nil || command.GiveUp == nil || command.GiveUp.Sizes["workers"] != 1 || command.GiveUp.Leave[0].Node != left || command.PodSets[1].Count != 2 {
				t.Fatalf("commanded is %+v", command)
			}
			s.sizes(2) // as before the command
			s.is(workload.Running, workload.ReasonShrunk)
			if podFirst {
				s.loses("workers", left)
				s.step(0)
			} else {
				s.sizes(1)
				s.loses("workers", left)
				s.step(0)
			}
			s.is(workload.Running, workload.ReasonShrunk)
			s.has(2)
			command = s.commanded()
			if command == nil || command.Yield == "" || command.PodSets[1].Count != 1 {
				t.Fatalf("with the pod gone, commanded is %+v", command)
			}
			s.sizes(1, obeys(command))
			s.has(1)
			s.is(workload.Running, "")
			if s.live.Get("next").Phase != workload.Admitted {
				t.Errorf("who waits for the place is %s", s.live.Get("next").Phase)
			}
			if command := s.commanded(); command == nil || command.GiveUp != nil {
				t.Errorf("in the end it commands %+v", command)
			}
			s.step(time.Hour)
			s.is(workload.Running, "")
			s.sizes(2) // its owner wants it again
			s.is(workload.Running, workload.ReasonGrowing)
		})
	}
}

// TestATearDownEndsAGiveUp: the gang goes whole.
func TestATearDownEndsAGiveUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(2)
	s.sizing.giveUp(s.gang(), admission.Shrink{Workload: gangID, PodSets: []workload.PodSet{{Name: "workers", Count: 1}}}, s.now)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	s.step(0)
	if command := s.commanded(); command == nil || command.State != event.Absent || command.GiveUp != nil {
		t.Errorf("commanded is %+v", command)
	}
}

// TestAGangThatGivesNothingUpIsEvicted: another workload waits for it, and would for ever. The
// reason has that workload still, whatever happened meanwhile, and what the whole gang loses.
func TestAGangThatGivesNothingUpIsEvicted(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(2)
	cause := workload.PreemptionCause{Preemptor: "other", Policy: "reclaimWithinCohort", Cost: &workload.EvictionCost{Lost: 1}}
	s.sizing.giveUp(s.gang(), admission.Shrink{
		Workload: gangID, PodSets: []workload.PodSet{{Name: "workers", Count: 1}},
		Reason: workload.Reason{Kind: workload.ReasonShrunk, Preemption: &cause, Foreign: []workload.ID{"other"}},
	}, s.now)
	s.step(giveUpMost - time.Second)
	s.sizes(2) // its owner makes it larger each time
	s.is(workload.Running, workload.ReasonShrunk)
	s.gang().Reason = nil // as after other news
	s.step(2 * time.Second)
	s.is(workload.Evicting, workload.ReasonPreempted)
	why := s.gang().Reason
	lost := 3 * int64(s.now.Sub(s.gang().Times.Admitted)/time.Second)
	if p := why.Preemption; p == nil || p.Preemptor != "other" || p.Policy != cause.Policy || p.Cost == nil || p.Cost.Lost != lost || p.Cost.Unit != workload.UnitPods || cause.Cost.Lost != 1 {
		t.Errorf("it is evicted for %+v, want the loss of three pods, %d", p, lost)
	}
	if !slices.Equal(why.Foreign, []workload.ID{"other"}) || !strings.HasSuffix(why.Message, fmt.Sprintf("; it loses %d pod-seconds since its admission", lost)) {
		t.Errorf("the reason is %+v", why)
	}
}
