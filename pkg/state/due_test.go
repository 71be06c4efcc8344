package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Each deadline has a time, and sets the timer when no other one passes before it.
func TestEachDeadlineSetsTheTimer(t *testing.T) {
	t.Parallel()
	running := func(change func(*entry)) func(*stage) {
		return func(s *stage) {
			s.created(true)
			change(s.gang())
		}
	}
	cancelled := func(s *stage) {
		s.created(true)
		s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	}
	hour := workload.Duration(time.Hour)
	cases := map[deadline]struct {
		rules workload.Rules
		reach func(*stage)
		// others are the deadlines that pass before it in this state.
		others []deadline
	}{
		askDeadline: {workload.Rules{}, cancelled, nil},
		removeDeadline: {workload.Rules{Life: workload.Life{CheckpointGrace: hour}}, func(s *stage) {
			s.created(true)
			s.evictWithGrace(s.gang(), &workload.Reason{Kind: workload.ReasonPreempted}, s.now)
		}, nil},
		forgetDeadline: {workload.Rules{KeepFinished: hour}, func(s *stage) {
			s.created(true)
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeSucceeded}, s.now, s.now)
		}, []deadline{askDeadline}},
		runTimeDeadline: {workload.Rules{Life: workload.Life{MaxRunTime: hour}}, running(func(*entry) {}), nil},
		idleDeadline:    {workload.Rules{Life: workload.Life{IdleTime: hour}}, func(s *stage) { running(func(e *entry) { e.idleSince = s.now })(s) }, nil},
		reportDeadline:  {workload.Rules{}, func(s *stage) { running(func(e *entry) { e.disruption.since = s.now })(s) }, nil},
		lossDeadline: {workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, func(s *stage) {
			running(func(e *entry) { e.disruption.lost = s.now })(s)
		}, nil},
		healDeadline: {workload.Rules{}, func(s *stage) {
			running(func(e *entry) { e.disruption.since, e.disruption.reported = s.now, true })(s)
		}, nil},
		readyDeadline: {workload.Rules{}, func(s *stage) { s.created(false) }, []deadline{slowDeadline}},
		slowDeadline:  {workload.Rules{}, func(s *stage) { s.created(false) }, nil},
		giveUpDeadline: {workload.Rules{}, func(s *stage) {
			running(func(e *entry) { e.giveUp, e.giveUpSince = &event.GiveUp{}, s.now })(s)
		}, nil},
		replaceDeadline: {workload.Rules{}, func(s *stage) { running(func(e *entry) { e.replaceAt = s.now.Add(time.Second) })(s) }, nil},
	}
	for d := range deadlineCount {
		c, listed := cases[d]
		if !listed {
			t.Errorf("no case for deadline %d", d)
			continue
		}
		s := newStage(t, c.rules, 3)
		s.SetAnswerTimeout(10 * time.Second)
		c.reach(s)
		e := s.gang()
		rules := s.rules(e)
		at := s.due(d, e, &rules)
		if at.IsZero() {
			t.Errorf("deadline %d has no time in a state that has it", d)
		}
		next := s.nextDeadline(e)
		for _, other := range c.others {
			if before := s.due(other, e, &rules); before.Before(at) {
				at = before
			}
		}
		if !next.Equal(at) {
			t.Errorf("deadline %d passes at %s, and the timer is set to %s", d, at, next)
		}
	}
}
