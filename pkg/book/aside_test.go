package book

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
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
		"its command was lost": func(s *stage) { s.RepeatCommands(s.now, func(string) bool { return true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(false)
			s.Take()
			s.SetAside(Aside{Workload: s.gang().ID, Level: AsideKept, Why: "no"}, s.now)
			held := len(s.gang().Placements)
			happens(s)
			s.Decide(s.now)
			changes := s.Take()
			if len(changes.Updated)+len(changes.Freed)+len(changes.Moved)+len(changes.History)+len(changes.Messages) > 0 {
				t.Errorf("written is %+v", changes)
			}
			if len(s.gang().Placements) != held || s.gang().Reason.Kind != workload.ReasonNotStorable {
				t.Errorf("it has %+v because of %+v", s.gang().Placements, s.gang().Reason)
			}
		})
	}
}

// A waiting workload that is held back is admitted later; one that fails says why.
func TestAWaitingWorkloadIsSetAside(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	id, until := s.gang().ID, s.now.Add(time.Minute)
	again := New(2, s.storedAs(workload.Queued))
	again.SetAside(Aside{Workload: id, Level: AsideHeld, Until: until, Why: "no"}, s.now)
	again.Decide(s.now)
	if e := again.live.Get(id); e.Phase != workload.Queued || e.Reason.Kind != workload.ReasonNotStorable || !e.NotBefore.Equal(until) {
		t.Errorf("held back it is %s because of %+v, not before %s", e.Phase, e.Reason, e.NotBefore)
	}
	again.Decide(until)
	if e := again.live.Get(id); e.Phase != workload.Admitted {
		t.Errorf("after that it is %s because of %+v", e.Phase, e.Reason)
	}
	again = New(3, s.storedAs(workload.Queued))
	again.SetAside(Aside{Workload: id, Level: AsideFailed, Why: "no"}, s.now)
	changes := again.Take()
	if len(changes.Updated) != 1 || changes.Updated[0].Phase != workload.Failed || changes.Updated[0].Reason.Kind != workload.ReasonNotStorable {
		t.Errorf("changed are %+v", changes.Updated)
	}
}

// storedAs is the stage as a term reads it, with the gang in another phase.
func (s *stage) storedAs(phase workload.Phase) Stored {
	record := s.gang().Record
	record.Phase, record.Holding, record.Placements, record.Cluster, record.Reason = phase, false, nil, "", nil
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, Workloads: []StoredWorkload{{record, 1}}}
	for _, n := range s.nodes {
		stored.Nodes = append(stored.Nodes, StoredNode{n.Node, n.version, n.present})
	}
	return stored
}

// Nothing new goes to a node that cannot be stored, and nothing of it is written.
func TestANodeIsSetAside(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("bad", nil)
	s.Take()
	s.SetAside(Aside{Node: admission.NodeKey{Cluster: "c", Name: "bad"}, Why: "no"}, s.now)
	s.node("bad", func(n *capacity.Node) { n.Cordoned = true })
	s.RewriteNodes()
	for _, n := range s.Take().Nodes {
		if n.Name == "bad" {
			t.Error("the node is written")
		}
	}
	s.removeNode(s.place("workers"))
	s.step(settle)
	if phase := s.gang().Phase; phase != workload.Evicting {
		t.Errorf("the gang is %s on %+v, and there was no other place", phase, s.gang().Placements)
	}
}

// A gang whose places stay says so once, in this attempt only.
func TestPlacesThatCannotBeStoredStay(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("spare", nil)
	s.Take()
	s.SetAside(Aside{Workload: s.gang().ID, Level: AsideHeld, Attempt: s.gang().Attempt, Why: "no"}, s.now)
	s.removeNode(s.place("workers"))
	s.step(settle)
	s.is(workload.Dispatched, workload.ReasonNotStorable)
	if changes := s.Take(); len(changes.Moved) != 0 || len(changes.History) != 1 {
		t.Errorf("written are %+v and %+v", changes.Moved, changes.History)
	}
	s.step(time.Minute)
	if changes := s.Take(); len(changes.History) != 0 {
		t.Errorf("it is told again: %+v", changes.History)
	}
}
