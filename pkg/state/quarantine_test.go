package state

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Of a gang that is kept nothing is written, whatever happens to it, and what it
// holds stays charged.
func TestNothingIsWrittenOfAKeptGang(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(s *stage){
		"a cancellation": func(s *stage) {
			if s.Cancel(&event.WorkloadCancel{Workload: s.gang().ID}, s.now) {
				s.T.Error("the cancellation was taken")
			}
		},
		"a status":            func(s *stage) { s.released() },
		"a lost node":         func(s *stage) { s.removeNode(s.place("headgroup")) },
		"a node that shrinks": func(s *stage) { s.node(s.place("workers"), func(n *capacity.Node) { n.Cordoned = true }) },
		"pods":                func(s *stage) { s.run() },
		"time":                func(s *stage) { s.step(time.Hour) },
		"its submission again": func(s *stage) {
			s.Submit(&event.WorkloadSubmitted{Workload: s.gang().Workload}, nil, s.now)
		},
		"its command was lost": func(s *stage) { s.ResendCommands(s.now, func(string) bool { return true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(false)
			s.Flush()
			s.Quarantine(Quarantined{Workload: s.gang().ID, Level: QuarantineFrozen, Why: "no"}, s.now)
			held := len(s.gang().Placements)
			happens(s)
			s.Decide(s.now)
			changes := s.Flush()
			if len(changes.Updated)+len(changes.Freed)+len(changes.Replaced)+len(changes.History)+len(changes.Messages) > 0 {
				t.Errorf("written is %+v", changes)
			}
			if len(s.gang().Placements) != held || s.gang().Reason.Kind != workload.ReasonNotStorable {
				t.Errorf("it has %+v because of %+v", s.gang().Placements, s.gang().Reason)
			}
		})
	}
}

// A waiting workload that is held back is admitted later; one that fails says why.
func TestAWaitingWorkloadIsQuarantined(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	id, until := s.gang().ID, s.now.Add(time.Minute)
	again := New(2, s.storedAs(workload.Queued))
	again.Quarantine(Quarantined{Workload: id, Level: QuarantineHeld, Until: until, Why: "no"}, s.now)
	again.Decide(s.now)
	if e := again.live.Get(id); e.Phase != workload.Queued || e.Reason.Kind != workload.ReasonNotStorable || !e.NotBefore.Equal(until) {
		t.Errorf("held back it is %s because of %+v, not before %s", e.Phase, e.Reason, e.NotBefore)
	}
	again.Decide(until)
	if e := again.live.Get(id); e.Phase != workload.Admitted {
		t.Errorf("after that it is %s because of %+v", e.Phase, e.Reason)
	}
	again = New(3, s.storedAs(workload.Queued))
	again.Quarantine(Quarantined{Workload: id, Level: QuarantineFailed, Why: "no"}, s.now)
	changes := again.Flush()
	if len(changes.Updated) != 1 || changes.Updated[0].Phase != workload.Failed || changes.Updated[0].Reason.Kind != workload.ReasonNotStorable {
		t.Errorf("changed are %+v", changes.Updated)
	}
}

// The head of a strict queue of which nothing can be stored stops no other gang, and comes
// first again once it is released.
func TestAKeptHeadOfAStrictQueueIsPassed(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	stored := s.storedAs(workload.Queued)
	stored.Queues[0].Strategy = quota.StrictFIFO
	later := stored.Workloads[0]
	later.ID, later.Name, later.Order = "later", "later", 2
	stored.Workloads = append(stored.Workloads, later)
	for _, c := range []struct {
		kept           bool
		first, another workload.Phase
	}{
		{true, workload.Queued, workload.Admitted},
		{false, workload.Admitted, workload.Queued},
	} {
		t.Run(fmt.Sprintf("kept %t", c.kept), func(t *testing.T) {
			again := New(2, stored)
			if c.kept {
				again.Quarantine(Quarantined{Workload: gangID, Level: QuarantineFrozen, Why: "no"}, s.now)
			}
			again.Decide(s.now)
			if first, another := again.live.Get(gangID), again.live.Get("later"); first.Phase != c.first || another.Phase != c.another {
				t.Errorf("kept: %t: the head is %s because of %+v, the other one %s", c.kept, first.Phase, first.Reason, another.Phase)
			}
		})
	}
}

// storedAs is the stage as a term reads it, with the gang in another phase.
func (s *stage) storedAs(phase workload.Phase) Stored {
	record := s.gang().Record
	record.Phase, record.Holding, record.Placements, record.Cluster, record.Reason = phase, false, nil, "", nil
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, Workloads: []StoredWorkload{{Record: record, Order: 1}}}
	for _, n := range s.nodes {
		stored.Nodes = append(stored.Nodes, StoredNode{n.Node, n.version, n.present})
	}
	return stored
}

// Nothing new goes to a node that cannot be stored, and nothing of it is written.
func TestANodeIsQuarantined(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("bad", nil)
	s.Flush()
	s.Quarantine(Quarantined{Node: admission.NodeKey{Cluster: "c", Name: "bad"}, Why: "no"}, s.now)
	s.node("bad", func(n *capacity.Node) { n.Cordoned = true })
	s.BeginDecisions(s.now)
	for _, n := range s.Flush().Nodes {
		if n.Name == "bad" {
			t.Error("the node is written")
		}
	}
	s.removeNode(s.place("workers"))
	s.step(settleTime)
	if phase := s.gang().Phase; phase != workload.Evicting {
		t.Errorf("the gang is %s on %+v, and there was no other place", phase, s.gang().Placements)
	}
}

// What is kept for a while is part of decisions again after it, and a term that begins then does
// not keep it.
func TestWhatIsKeptForAWhileComesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		until time.Duration
		phase workload.Phase
		kept  bool
	}{
		"still kept": {time.Minute, workload.Queued, true},
		"over":       {0, workload.Admitted, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			id := s.gang().ID
			again := New(2, s.storedAs(workload.Queued))
			again.Quarantine(Quarantined{Workload: id, Level: QuarantineFrozen, Until: s.now.Add(c.until), Why: "no"}, s.now)
			again.Quarantine(Quarantined{Node: admission.NodeKey{Cluster: "c", Name: "spare"}, Until: s.now.Add(c.until), Why: "no"}, s.now)
			again.Decide(s.now)
			if e := again.live.Get(id); e.Phase != c.phase || again.IsFrozen(id) != c.kept {
				t.Errorf("it is %s because of %+v, kept: %t", e.Phase, e.Reason, again.IsFrozen(id))
			}
			if kept := len(again.quarantinedNodes) > 0; kept != c.kept {
				t.Errorf("the node is kept: %t", kept)
			}
		})
	}
}

// Gangs that would be charged to a quota that cannot be used wait with the reason, new ones and
// those that are there, and no others do. They are admitted after it.
func TestAQuotaIsQuarantined(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	stored := s.storedAs(workload.Queued)
	stored.Queues = append(stored.Queues, Queue{Name: "free", Namespaces: []string{"free"}})
	free := stored.Workloads[0]
	free.ID, free.Name, free.Order, free.Queue, free.Namespace = "free", "free", 2, "free", "free"
	stored.Workloads[0].Reason = &workload.Reason{Kind: workload.ReasonWaitingForEviction, Message: "gangs were evicted for it"}
	stored.Workloads = append(stored.Workloads, free)
	for _, n := range stored.Nodes { // there is room for all three
		first, second := n, n
		first.Name, second.Name = n.Name+"-first", n.Name+"-second"
		stored.Nodes = append(stored.Nodes, first, second)
	}
	again, until := New(2, stored), s.now.Add(time.Minute)
	again.Quarantine(Quarantined{Scope: "clusterQueue q", Level: QuarantineHeld, Until: until, Why: "no"}, s.now)
	fresh := s.gang().Workload
	fresh.ID, fresh.Name, fresh.Digest = "fresh", "fresh", "fresh"
	again.Submit(&event.WorkloadSubmitted{Workload: fresh}, nil, s.now)
	is := func(id workload.ID, phase workload.Phase, kind workload.ReasonKind) {
		t.Helper()
		e := again.live.Get(id)
		if e.Phase != phase || kind != "" && (e.Reason == nil || e.Reason.Kind != kind) {
			t.Errorf("workload %s is %s, want %s because of %q: %+v", id, e.Phase, phase, kind, e.Reason)
		}
	}
	again.Decide(s.now)
	is(gangID, workload.Queued, workload.ReasonNotStorable)
	is("fresh", workload.Queued, workload.ReasonNotStorable)
	is("free", workload.Admitted, "")
	again.Decide(until)
	is(gangID, workload.Admitted, "")
	is("fresh", workload.Admitted, "")
}

// A gang whose places stay says so once, in this attempt only.
func TestPlacesThatCannotBeStoredStay(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("spare", nil)
	s.Flush()
	s.Quarantine(Quarantined{Workload: s.gang().ID, Level: QuarantineHeld, Attempt: s.gang().Attempt, Why: "no"}, s.now)
	s.removeNode(s.place("workers"))
	s.step(settleTime)
	s.is(workload.Dispatched, workload.ReasonNotStorable)
	if changes := s.Flush(); len(changes.Replaced) != 0 || len(changes.History) != 1 {
		t.Errorf("written are %+v and %+v", changes.Replaced, changes.History)
	}
	s.step(time.Minute)
	if changes := s.Flush(); len(changes.History) != 0 {
		t.Errorf("it is recorded again: %+v", changes.History)
	}
}
