package state

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// limited reports a namespace of which a container may have a limit of that number of millicores;
// zero is without a LimitRange.
func (s *stage) limited(session, most int64) {
	s.seq++
	o := &event.NamespaceObserved{Version: event.Version{Session: session, Seq: s.seq}, Cluster: "c", Namespace: "ns"}
	if most > 0 {
		o.Ranges = []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Max: resource.List{"cpu": most}}}}}
	}
	s.Namespace(o, s.now)
}

// askingFor is a pod with one container that asks for that number of millicores.
func askingFor(cores int64) workload.Template {
	amounts := resource.List{"cpu": cores}
	return workload.Template{
		Requests: resource.List{"cpu": cores, "pods": 1}, Asks: [][]workload.ContainerAsk{{{Name: "worker", Requests: amounts, Limits: amounts}}},
	}
}

// newLimited is a term with a node of four millicores and a gang of two in a namespace with one
// LimitRange.
func newLimited(t *testing.T, most int64) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}
	s.State = New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{{Name: "q", Namespaces: []string{"ns"}}}})
	s.CatchUp()
	s.node("n", nil)
	s.limited(1, most)
	s.BeginDecisions(s.now)
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Namespace: "ns", Kind: "RayCluster", Name: "gang",
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: askingFor(2)}},
	}}, nil, s.now)
	s.step(0)
	return s
}

func (s *stage) wantHeld(most string) {
	s.Helper()
	e := s.gang()
	if e.Phase != workload.Queued || e.Reason == nil || e.Reason.Kind != workload.ReasonHeld || !strings.Contains(e.Reason.Message, "allows a container "+most+" at most") {
		s.Errorf("the gang is %s because %+v, want it held by a maximum of %s", e.Phase, e.Reason, most)
	}
}

// TestLimitRangesAreTakenInByVersion: as the labels of a namespace are.
func TestLimitRangesAreTakenInByVersion(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 1)
	s.wantHeld("1m")
	s.Namespace(&event.NamespaceObserved{Version: event.Version{Session: 1, Seq: 1}, Cluster: "c", Namespace: "ns"}, s.now) // an older one
	s.step(0)
	s.wantHeld("1m")
	s.seq++
	s.Synced(&event.CapacitySynced{Version: event.Version{Session: 2, Seq: 1}, Cluster: "c", Nodes: []string{"n"}}, s.now)
	s.limited(1, 0) // of a watcher that was replaced
	s.step(0)
	s.wantHeld("1m")
	s.limited(2, 2)
	s.step(0)
	if e := s.gang(); e.Phase != workload.Admitted {
		t.Errorf("the gang is %s because %+v", e.Phase, e.Reason)
	}
}

// TestACommandHasNoContainers: dispatcher compares nothing with LimitRanges, and a gang of many
// containers would make each command large.
func TestACommandHasNoContainers(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 0)
	e := s.gang()
	sets := s.command(e, event.Present).PodSets
	if e.Phase != workload.Admitted || len(sets) != 1 || sets[0].Template.Requests["cpu"] != 2 || sets[0].Template.Asks != nil {
		t.Errorf("the gang is %s, and its command has %+v", e.Phase, sets)
	}
	if len(e.PodSets[0].Template.Asks) != 1 {
		t.Errorf("the gang itself has %+v", e.PodSets)
	}
}

// TestANewLeaderHoldsWhatIsBeyond: it reads the LimitRanges before it decides, and what has places
// keeps them.
func TestANewLeaderHoldsWhatIsBeyond(t *testing.T) {
	t.Parallel()
	s := newLimited(t, 1)
	s.replaceLeader(func() { s.limited(1, 1) })
	s.wantHeld("1m")
	s.replaceLeader(func() { s.limited(1, 2) })
	if e := s.gang(); e.Phase != workload.Admitted {
		t.Errorf("the gang is %s because %+v", e.Phase, e.Reason)
	}
	s.limited(1, 1)
	s.step(0)
	if e := s.gang(); e.Phase != workload.Admitted {
		t.Errorf("when it has places the gang is %s because %+v", e.Phase, e.Reason)
	}
}

// TestAnAskerGivesWayToALimitRange: nodes that come for a gang whose pods the cluster refuses are
// of no use, so it does not show itself any more.
func TestAnAskerGivesWayToALimitRange(t *testing.T) {
	t.Parallel()
	a := newShowerOf(t, askingFor(4))
	a.answers(requestOne, event.RequestProvisioned)
	a.limited(1, 3)
	a.step(0)
	a.tick()
	a.wantHeld("3m")
	a.wantSent("forgotten " + requestOne)
	if used := a.admission.Quota().Queue("q").Used()["cpu"]; used != 0 {
		t.Errorf("it holds %d millicores of quota, want none", used)
	}
	a.limited(1, 4)
	a.step(0)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
}
