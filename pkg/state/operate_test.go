package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// lastReason returns the reason in the last event about a workload since the last Flush.
func (s *stage) lastReason(id workload.ID) string {
	s.Helper()
	text := ""
	for _, m := range s.Flush().Messages {
		if changed, is := m.Payload.(*event.WorkloadChanged); is && changed.ID == id && changed.Reason != nil {
			text = changed.Reason.Message
		}
	}
	return text
}

// A held workload is not admitted although there is room, and others pass it, also in a
// strict queue. Resumed, it is admitted at its old place by submission; a new term holds it,
// too.
func TestAHeldWorkloadWaitsAndKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	order := s.gang().order
	if !s.Hold(&event.WorkloadHold{Workload: gangID, By: "ann@ops", Why: "new data"}, s.now) {
		t.Fatal("the workload is not live")
	}
	const want = "held by an operator: ann@ops, since 1970-01-12T13:46:40Z: new data"
	if got := s.lastReason(gangID); got != want {
		t.Errorf("the event says %q, want %q", got, want)
	}
	for i := range 3 {
		s.node(string(rune('a'+i)), nil)
	}
	s.step(time.Second)
	s.is(workload.Queued, workload.ReasonHeld)
	s.replaceLeader()
	s.is(workload.Queued, workload.ReasonHeld)
	if got := s.gang().Reason.Message; got != want {
		t.Errorf("the next term says %q, want %q", got, want)
	}
	explained, err := s.Explain(gangID, s.now)
	if err != nil || explained.Reason.Message != want || len(explained.Changes) != 1 || explained.Changes[0].Kind != workload.ChangeResume {
		t.Errorf("explained by %+v, %v; want the hold, and to resume it", explained, err)
	}
	s.Hold(&event.WorkloadHold{Workload: gangID, Resume: true, By: "bob@ops", Why: "it is there"}, s.now)
	if got := s.lastReason(gangID); got != "bob@ops resumed it: it is there" {
		t.Errorf("the event says %q", got)
	}
	s.step(0)
	s.is(workload.Admitted, "")
	if e := s.gang(); e.order != order || e.Hold != nil {
		t.Errorf("it has order %d, want %d, and the hold %+v", e.order, order, e.Hold)
	}
}

// Who waits behind a held head of a StrictFIFO queue passes it.
func TestAHeldHeadBlocksNoGang(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	strict := []Queue{{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.StrictFIFO}}
	s.ApplyConfiguration(strict, quota.Config{}, s.version)
	s.Hold(&event.WorkloadHold{Workload: gangID, By: "ann"}, s.now)
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "second", Queue: "q", Kind: "RayCluster", Name: "second",
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, s.now)
	s.node("a", nil)
	s.step(0)
	if e := s.live.Get("second"); e.Phase != workload.Admitted {
		t.Errorf("the second is %s because of %+v", e.Phase, e.Reason)
	}
	s.is(workload.Queued, workload.ReasonHeld)
}

// What cannot be done changes nothing, and an event says what would be right.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	mine := workload.Rules{Submitters: []workload.Submitters{{Who: []string{"http/alice"}}}}
	hold := func(submitter string) func(*stage) {
		return func(s *stage) { s.Hold(&event.WorkloadHold{Workload: gangID, By: "x", Submitter: submitter}, s.now) }
	}
	resume := func(submitter string) func(*stage) {
		return func(s *stage) {
			s.Hold(&event.WorkloadHold{Workload: gangID, Resume: true, By: "x", Submitter: submitter}, s.now)
		}
	}
	requeue := func(s *stage) { s.Requeue(&event.WorkloadRequeue{Workload: gangID, By: "x"}, s.now) }
	cancel := func(s *stage) { s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now) }
	for name, c := range map[string]struct {
		nodes    int
		prepare  func(*stage)
		ask      func(*stage)
		want     string
		heldThen bool
	}{
		"hold what runs":                 {3, func(s *stage) { s.created(true) }, hold(""), "not held: it is running, and only a waiting workload can be held; `muster requeue`", false},
		"hold what is cancelled":         {3, func(s *stage) { s.created(true); cancel(s) }, hold(""), "not held: it is cancelling", false},
		"hold again":                     {0, hold(""), hold(""), "not held: it is held by an operator: x", true},
		"hold what an operator holds":    {0, hold(""), hold("http/alice"), "not held: it is held by an operator: x", true},
		"resume what is not held":        {0, nil, resume(""), "not resumed: it is not held", false},
		"resume what an operator holds":  {0, hold(""), resume("http/alice"), "not resumed: it is held by an operator: x", true},
		"another's":                      {0, nil, hold("http/bob"), "", false},
		"resume another's":               {0, hold("http/alice"), resume("http/bob"), "", true},
		"requeue what waits":             {0, nil, requeue, "not requeued: it is queued, and only a workload that was admitted", false},
		"requeue what is being evicted":  {3, func(s *stage) { s.created(true); requeue(s) }, requeue, "not requeued: it is evicting", false},
		"set the priority at the end":    {3, func(s *stage) { s.created(true); cancel(s) }, func(s *stage) { s.SetPriority(&event.WorkloadPriority{Workload: gangID, Priority: 7}, s.now) }, "priority not changed: it is cancelling and ends", false},
		"an operator takes over a hold":  {0, hold("http/alice"), hold(""), "held by an operator: x, since", true},
		"a submitter resumes its own":    {0, hold("http/alice"), resume("http/alice"), "x resumed it", false},
		"an operator resumes a tenant's": {0, hold("http/alice"), resume(""), "x resumed it", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, c.nodes)
			q := s.queues["q"]
			q.Rules.Submitters = mine.Submitters
			s.queues["q"] = q
			if c.prepare != nil {
				c.prepare(s)
			}
			s.Flush()
			c.ask(s)
			if got := s.lastReason(gangID); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
				t.Errorf("the event says %q, want %q", got, c.want)
			}
			if e := s.gang(); (e.Hold != nil) != c.heldThen || e.Priority != 0 {
				t.Errorf("it has the hold %+v and the priority %d", e.Hold, e.Priority)
			}
		})
	}
}

// A requeued gang has the grace of an eviction, waits again at its place, and that is no
// fault of it. Held meanwhile, it is not admitted again.
func TestARequeuedGangIsQueuedAgain(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(map[bool]string{false: "not held", true: "held meanwhile"}[held], func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
			s.created(true)
			order := s.gang().order
			request := &event.WorkloadRequeue{Workload: gangID, Attempt: 1, By: "ann@ops", Why: "new driver"}
			s.Requeue(request, s.now)
			s.is(workload.Evicting, workload.ReasonRequeued)
			if got := s.gang().Reason.Message; got != "requeued by ann@ops: new driver; it loses 0 pod-seconds since its admission" {
				t.Errorf("the reason is %q", got)
			}
			if got := s.gang().EvictAt; !got.Equal(s.now.Add(30 * time.Second)) {
				t.Errorf("its objects are deleted at %s, want in 30s", got)
			}
			if held {
				s.Hold(&event.WorkloadHold{Workload: gangID, By: "ann@ops"}, s.now)
				s.is(workload.Evicting, workload.ReasonRequeued)
			}
			s.step(30 * time.Second)
			if command := s.commanded(); command == nil || command.State != event.Absent {
				t.Errorf("the command is %+v, want to remove it", command)
			}
			s.released()
			s.step(0)
			e := s.gang()
			if e.Attempt != 2 || e.Requeues != 0 || e.order != order {
				t.Errorf("attempt %d with %d requeues for faults, order %d; want attempt 2, none, %d", e.Attempt, e.Requeues, e.order, order)
			}
			if held {
				s.is(workload.Queued, workload.ReasonHeld)
				return
			}
			s.is(workload.Admitted, "")
			s.Requeue(request, s.now) // the message comes again: that attempt is over
			s.is(workload.Admitted, "")
		})
	}
}

// The priority of a waiting workload decides about its place, that of a running one is
// stored with it, and the history of both says who changed it.
func TestThePriorityOfAWorkloadIsChanged(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]int{"waiting": 0, "running": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, nodes)
			if nodes > 0 {
				s.created(true)
			}
			phase := s.gang().Phase
			s.Flush()
			s.SetPriority(&event.WorkloadPriority{Workload: gangID, Priority: 500, By: "ann@ops", Why: "Friday"}, s.now)
			s.step(0)
			changes := s.Flush()
			const want = "ann@ops set its priority to 500, from 0: Friday"
			if len(changes.History) < 2 || changes.History[0].Reason == nil || changes.History[0].Reason.Message != want {
				t.Errorf("the history is %+v, want %q first", changes.History, want)
			}
			if len(changes.Updated) != 1 || changes.Updated[0].Priority != 500 || changes.Updated[0].Phase != phase {
				t.Errorf("stored is %+v", changes.Updated)
			}
			if nodes > 0 && s.gang().Reason != nil {
				t.Errorf("it runs because of %+v", s.gang().Reason)
			}
			s.SetPriority(&event.WorkloadPriority{Workload: gangID, Priority: 500, By: "ann@ops"}, s.now)
			if again := s.Flush(); len(again.History) != 0 || len(again.Messages) != 1 {
				t.Errorf("the same once more: history %+v, messages %+v; want an event alone", again.History, again.Messages)
			}
		})
	}
}
