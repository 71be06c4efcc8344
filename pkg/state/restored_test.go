package state

import (
	"encoding/json"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// lastFlushed returns the last command and the last event of what has been written since
// the last call.
func (s *stage) lastFlushed() (command *event.GangCommand, changed *event.WorkloadChanged) {
	for _, m := range s.Flush().Messages {
		switch p := m.Payload.(type) {
		case *event.GangCommand:
			command = p
		case *event.WorkloadChanged:
			changed = p
		}
	}
	return command, changed
}

func (s *stage) status(attempt int, change func(*event.GangStatus)) {
	status := &event.GangStatus{Workload: gangID, Cluster: "c", Attempt: attempt}
	change(status)
	s.Status(status, s.now, s.now)
}

// A dispatcher that finds the object of an attempt after the one that it was
// commanded says so: the ledger has forgotten that attempt. It is removed, holds no
// place meanwhile that the ledger would not know of, and the next attempt has a number
// that none had.
func TestALaterAttemptOfTheClusterIsRemoved(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.is(workload.Running, "")
	s.Flush()

	s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 3 })
	s.is(workload.Queued, workload.ReasonRestored)
	command, changed := s.lastFlushed()
	if command == nil || command.State != event.Absent || command.Attempt != 3 || command.Cluster != "c" {
		t.Fatalf("commanded is %+v, want attempt 3 absent", command)
	}
	if changed == nil || changed.Attempt != 4 || changed.Holding || len(changed.Placements) != 0 {
		t.Errorf("the event is %+v, want attempt 4 without places", changed)
	}
	s.step(time.Minute)
	s.is(workload.Queued, workload.ReasonRestored) // the nodes seem free, and the pods are there

	s.status(3, func(g *event.GangStatus) { g.Gone = true })
	s.step(time.Second)
	s.is(workload.Queued, workload.ReasonRestored) // the object is gone, its pods are not
	s.status(1, func(g *event.GangStatus) { g.Gone, g.Released = true, true })
	s.step(time.Second)
	s.is(workload.Queued, workload.ReasonRestored) // that was reported of another attempt

	clear(s.pods)
	s.observe()
	s.status(3, func(g *event.GangStatus) { g.Gone, g.Released = true, true })
	s.step(time.Second)
	s.is(workload.Admitted, "")
	if command := s.commanded(); command == nil || command.State != event.Present || command.Attempt != 4 {
		t.Errorf("commanded is %+v, want attempt 4 present", command)
	}
}

// While a lost attempt is removed, the dispatcher tells of a later one, which was lost in
// another restoration: of its command, or of the object that it finds. The dispatcher does not
// obey the removal of the earlier one any more, so that of the later one is what counts.
func TestALaterAttemptIsRemovedInsteadOfTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]func(s *stage){
		"by its status": func(s *stage) { s.status(5, func(g *event.GangStatus) { g.Created, g.Gone = true, true }) },
		"by its object": func(s *stage) { s.status(3, func(g *event.GangStatus) { g.Later = 5 }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(true)
			s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 3 })
			s.is(workload.Queued, workload.ReasonRestored)
			s.Flush()

			report(s)
			s.is(workload.Queued, workload.ReasonRestored)
			if command, _ := s.lastFlushed(); command == nil || command.State != event.Absent || command.Attempt != 5 {
				t.Fatalf("commanded is %+v, want attempt 5 absent", command)
			}
			clear(s.pods)
			s.observe()
			s.status(5, func(g *event.GangStatus) { g.Gone, g.Released = true, true })
			s.step(time.Second)
			s.is(workload.Admitted, "")
			if command := s.commanded(); command == nil || command.State != event.Present || command.Attempt != 6 {
				t.Errorf("commanded is %+v, want attempt 6 present", command)
			}
		})
	}
}

// The end of a workload takes the attempt with it of which the ledger does not know.
func TestALaterAttemptEndsWithACancelledWorkload(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	s.is(workload.Cancelling, "")
	s.Flush()

	s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 2 })
	s.is(workload.Cancelling, "")
	if command := s.commanded(); command == nil || command.State != event.Absent || command.Attempt != 2 {
		t.Fatalf("commanded is %+v, want attempt 2 absent", command)
	}
	s.released()
	if e := s.live.Get(gangID); e != nil {
		t.Errorf("after both attempts are gone it is %s", e.Phase)
	}
}

// A status is of no effect that tells of a later attempt and is old itself.
func TestALaterAttemptIsNoNewsOfAnOldStatus(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.Flush()
	s.status(0, func(g *event.GangStatus) { g.Later = 5 })
	s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 1 })
	s.is(workload.Running, "")
	if command := s.commanded(); command != nil {
		t.Errorf("commanded is %+v, want nothing", command)
	}
}

// An attempt that was published, and of which no command is in the streams, is not done
// again: what readers know of it would change.
func TestAPublishedAttemptIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		published workload.Record
		// forgotten is the attempt that the last command let be forgotten; 0 for none.
		forgotten int
		want      int
	}{
		"an admission":      {workload.Record{Phase: workload.Admitted, Attempt: 1, Holding: true}, 0, 2},
		"a third attempt":   {workload.Record{Phase: workload.Running, Attempt: 3, Holding: true}, 0, 4},
		"waiting for it":    {workload.Record{Phase: workload.Queued, Attempt: 2}, 0, 2},
		"waiting for first": {workload.Record{Phase: workload.Queued, Attempt: 1}, 0, 1},
		"one that is over":  {workload.Record{Phase: workload.Queued, Attempt: 1}, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 0)
			s.is(workload.Queued, "")
			c.published.ID = gangID
			ahead := Ahead{LastRecords: []workload.Record{c.published}}
			if c.forgotten > 0 {
				ahead.Commands = []*event.GangCommand{{Workload: gangID, Cluster: "c", Attempt: c.forgotten, State: event.Forgotten}}
			}
			s.Ahead(ahead, s.now)
			for _, node := range []string{"a", "b", "c"} {
				s.node(node, nil)
			}
			s.step(0)
			s.is(workload.Admitted, "")
			if got := s.gang().Attempt; got != c.want {
				t.Errorf("it is admitted as attempt %d, want %d", got, c.want)
			}
		})
	}
}

// A workload that is lost with the database and submitted again begins after the
// attempts of which the streams tell, and not before the objects of them are gone.
func TestALostWorkloadThatIsSubmittedAgainBeginsAfterItsAttempts(t *testing.T) {
	t.Parallel()
	lost := workload.Record{
		Workload: workload.Workload{ID: "lost", Queue: "q", Kind: "RayCluster", Name: "lost"}, Phase: workload.Running, Attempt: 2, Cluster: "c", Holding: true,
	}
	command := &event.GangCommand{Workload: "lost", Cluster: "c", Attempt: 2, State: event.Present, Queue: "q", Kind: "RayCluster", Name: "lost"}
	over := &event.GangCommand{Workload: "lost", Cluster: "c", Attempt: 2, State: event.Forgotten}
	for name, c := range map[string]struct {
		ahead   Ahead
		waits   bool // for the removal of what is there
		attempt int
	}{
		"it runs":          {Ahead{LastRecords: []workload.Record{lost}, Lost: []workload.Record{lost}, Commands: []*event.GangCommand{command}}, true, 3},
		"it is over":       {Ahead{Lost: []workload.Record{lost}, Commands: []*event.GangCommand{over}}, false, 3},
		"only events tell": {Ahead{LastRecords: []workload.Record{lost}}, true, 3},
		"nothing tells":    {Ahead{}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 6)
			s.Flush()
			s.Ahead(c.ahead, s.now)
			command, _ := s.lastFlushed()
			if removes := command != nil && command.State == event.Absent; removes != c.waits {
				t.Errorf("commanded is %+v, want a removal: %v", command, c.waits)
			} else if removes && name == "only events tell" && command.ForceAfter != (workload.Rules{}).WithDefaults().ForceAfter {
				t.Errorf("pods are deleted by force after %v", command.ForceAfter)
			}
			again := s.live.Get(gangID).Workload
			again.ID, again.Name = "lost", "lost"
			s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: again}, nil, s.now)
			s.step(0)
			e := s.live.Get("lost")
			if admitted := e.Phase == workload.Admitted; admitted == c.waits {
				t.Fatalf("it is %s, reason %v", e.Phase, e.Reason)
			}
			s.Status(&event.GangStatus{Workload: "lost", Cluster: "c", Attempt: 2, Gone: true, Released: true}, s.now, s.now)
			s.step(0)
			if e.Phase != workload.Admitted || e.Attempt != c.attempt {
				t.Errorf("it is %s as attempt %d, want admitted as attempt %d", e.Phase, e.Attempt, c.attempt)
			}
		})
	}
}

// A state that was loaded again, or that follows, has waiting workloads of which an
// attempt is removed, too: a standby forgets one that has changed, and a leader may be
// asked to cancel it.
func TestAStateReadAgainDealsWithAnAttemptThatIsRemoved(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 3 })
	s.is(workload.Queued, workload.ReasonRestored)
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, Workloads: []StoredWorkload{{Record: s.gang().Record, Order: 1}}}

	leader := New(2, stored)
	leader.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	if leader.Has(gangID) {
		t.Error("a workload that waits for a removal is not cancelled")
	}
	if len(leader.removals.unknown) != 1 {
		t.Errorf("the leader knows of %d removals of what is not there, want 1", len(leader.removals.unknown))
	}

	standby := New(0, stored)
	standby.Follow(Delta{Version: 1, Workloads: stored.Workloads})
	if !standby.removals.removing[gangID] || len(standby.removals.unknown) != 0 {
		t.Errorf("a standby that reads it again has %v removed, and of no workload %v", standby.removals.removing, standby.removals.unknown)
	}
	standby.Follow(Delta{Version: 2, Gone: []workload.ID{gangID}})
	if standby.Has(gangID) || len(standby.removals.unknown) != 0 {
		t.Errorf("a standby keeps %v of a workload that is gone", standby.removals.unknown)
	}
}

// The leader dies after it has had a lost attempt removed and before that was done.
// The next one finds only the event of the attempt, and the workload submitted again.
func TestALaterTermWaitsForTheRemovalOfALostAttempt(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	s.Flush()
	published := s.gang().Record
	published.Phase, published.Attempt, published.Cluster, published.Holding = workload.Running, 2, "c", true
	s.Ahead(Ahead{LastRecords: []workload.Record{published}}, s.now)
	if command := s.commanded(); command == nil || command.State != event.Absent || command.Attempt != 2 {
		t.Fatalf("commanded is %+v, want attempt 2 absent", command)
	}
	for _, node := range []string{"a", "b", "c"} {
		s.node(node, nil)
	}
	s.step(0)
	s.is(workload.Queued, workload.ReasonRestored)
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 2, Gone: true, Released: true}, s.now, s.now)
	s.step(0)
	s.is(workload.Admitted, "")
	if got := s.gang().Attempt; got != 3 {
		t.Errorf("it is admitted as attempt %d, want 3", got)
	}
}
