package state

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// single submits a workload of one pod that fills a node.
func (s *stage) single(id workload.ID) *entry {
	s.Helper()
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "q", Kind: "RayCluster", Name: string(id),
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, s.now)
	s.step(0)
	return s.live.Get(id)
}

// TestForceRelease: an operator frees the places of a workload in any phase; pods
// that are seen keep their room.
func TestForceRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*stage)
		ends   workload.Phase
		full   bool // pods are seen on all nodes
	}{
		"admitted":   {func(*stage) {}, workload.Failed, false},
		"dispatched": {func(s *stage) { s.created(false) }, workload.Failed, false},
		"running":    {func(s *stage) { s.created(true) }, workload.Failed, true},
		"cancelling": {func(s *stage) {
			s.created(true)
			s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
		}, workload.Cancelled, true},
		"ended": {func(s *stage) {
			s.created(true)
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeSucceeded}, s.now, s.now)
		}, workload.Succeeded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			c.before(s)
			if next := s.single("next"); next.Phase != workload.Queued {
				t.Fatalf("the next is %s while all nodes are reserved", next.Phase)
			}
			s.Flush()
			if !s.ForceRelease(&event.WorkloadRelease{Workload: gangID, By: "ann", Why: "the cluster burned"}, s.now) {
				t.Fatal("the workload is not known")
			}
			s.step(0)
			changes := s.Flush()
			if s.live.Get(gangID) != nil {
				t.Error("it is live")
			}
			var last *event.WorkloadChanged
			forgotten := false
			for _, m := range changes.Messages {
				switch p := m.Payload.(type) {
				case *event.WorkloadChanged:
					if p.ID == gangID {
						last = p
					}
				case *event.GangCommand:
					forgotten = forgotten || p.Workload == gangID && p.State == event.Forgotten
				}
			}
			if last == nil || last.Phase != c.ends || last.Reason.Kind != workload.ReasonReleased ||
				!strings.Contains(last.Reason.Message, "ann released the places in cluster c by force: the cluster burned") || last.Holding {
				t.Errorf("the last record is %+v; want that it is %s, by whom and why", last, c.ends)
			}
			if !forgotten {
				t.Error("the dispatcher is not commanded to forget it")
			}
			next := s.live.Get("next")
			if admitted := next.Phase == workload.Admitted; admitted == c.full {
				t.Errorf("the next is %s with pods on the nodes: %v", next.Phase, c.full)
			}
			if c.full {
				s.seq++
				s.Gang(&event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID}, s.now, s.now)
				s.step(0)
				s.isPhase("next", workload.Admitted)
			}
		})
	}
}

func (s *stage) isPhase(id workload.ID, phase workload.Phase) {
	s.Helper()
	if e := s.live.Get(id); e.Phase != phase {
		s.Errorf("%s is %s, want %s", id, e.Phase, phase)
	}
}

// TestForceReleaseOfNothing: one that waits stays as it is, an unknown one is an error.
func TestForceReleaseOfNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	if !s.ForceRelease(&event.WorkloadRelease{Workload: gangID, By: "ann", Why: "x"}, s.now) || s.gang().Phase != workload.Queued {
		t.Errorf("a workload that waits is %s", s.gang().Phase)
	}
	if s.ForceRelease(&event.WorkloadRelease{Workload: "unknown", By: "ann", Why: "x"}, s.now) {
		t.Error("an unknown workload is taken for a live one")
	}
}
