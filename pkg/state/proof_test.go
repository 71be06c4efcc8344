package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// lastEvent returns the last event of a workload since the last call.
func (s *stage) lastEvent(id workload.ID) (last *event.WorkloadChanged) {
	s.Helper()
	for _, m := range s.Flush().Messages {
		if changed, ok := m.Payload.(*event.WorkloadChanged); ok && changed.ID == id {
			last = changed
		}
	}
	if last == nil {
		s.Fatalf("there is no event of %s", id)
	}
	return last
}

// The event of a workload that waits has a proof which holds by itself.
func TestTheEventOfAWaitingWorkloadHasAProof(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 2)
	changed := s.lastEvent(gangID)
	if changed.Phase != workload.Queued || len(changed.Certificate) == 0 || len(changed.Certificate) > proofBytes {
		t.Fatalf("it is %s because of %+v, with a certificate of %d bytes", changed.Phase, changed.Reason, len(changed.Certificate))
	}
	message, err := event.Marshal("id", event.QueueManagerSource, s.now, "", changed)
	if err != nil {
		t.Fatal(err)
	}
	document, err := certificate.Read(strings.NewReader(string(message)))
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.Verify(document); err != nil || document.Workload != gangID {
		t.Errorf("of workload %s: %v", document.Workload, err)
	}
	s.node("n2", nil)
	s.step(0)
	if changed := s.lastEvent(gangID); changed.Phase != workload.Admitted || changed.Certificate != nil {
		t.Errorf("it is %s, with the certificate %s", changed.Phase, changed.Certificate)
	}
}

// So has the event of a workload for which there is room, but not within its topology.
func TestTheEventOfAWorkloadOutsideItsTopologyHasAProof(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	for _, rack := range []string{"r0", "r1"} {
		s.node(rack, func(n *capacity.Node) { n.Labels = map[string]string{"rack": rack} })
	}
	set := podSet("workers", workload.RoleWorker, 2)
	set.Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
	s.now = s.now.Add(time.Minute)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: "one", Queue: "q", Kind: "RayCluster", Name: "one", PodSets: []workload.PodSet{set},
	}}, nil, s.now)
	s.step(0)
	changed := s.lastEvent("one")
	if changed.Reason == nil || changed.Reason.Kind != workload.ReasonTopology || len(changed.Certificate) == 0 {
		t.Fatalf("it waits because of %+v, with a certificate of %d bytes", changed.Reason, len(changed.Certificate))
	}
	message, err := event.Marshal("id", event.QueueManagerSource, s.now, "", changed)
	if err != nil {
		t.Fatal(err)
	}
	document, err := certificate.Read(strings.NewReader(string(message)))
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.Verify(document); err != nil || document.Workload != "one" {
		t.Errorf("of workload %s: %v", document.Workload, err)
	}
}

// Certificates cost a leader no more than it has: one in a second, and none over many nodes
// or in a large document.
func TestProofsInEventsAreBounded(t *testing.T) {
	t.Parallel()
	has := func(s *stage, id workload.ID) bool {
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: id, Queue: "q", Kind: "RayCluster", Name: string(id), PodSets: []workload.PodSet{podSet("workers", workload.RoleWorker, 3)},
		}}, nil, s.now)
		s.step(0)
		return s.lastEvent(id).Certificate != nil
	}
	t.Run("one in a second", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, workload.Rules{}, 2)
		if s.lastEvent(gangID).Certificate == nil || has(s, "at once") {
			t.Error("want a certificate of the first only")
		}
		s.now = s.now.Add(proofEvery)
		if !has(s, "later") {
			t.Error("a second later there is none")
		}
	})
	t.Run("many nodes", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, workload.Rules{}, 0)
		for i := range proofNodes + 1 {
			s.node(fmt.Sprintf("m%d", i), func(n *capacity.Node) { n.Allocatable = resource.List{"cpu": 1, "pods": 1} })
		}
		s.now = s.now.Add(time.Minute)
		if has(s, "one") {
			t.Error("there is a certificate")
		}
	})
	t.Run("a large document", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, workload.Rules{}, 0)
		for i := range 400 {
			s.node(fmt.Sprintf("m%d", i), func(n *capacity.Node) {
				n.Allocatable = resource.List{"cpu": 3, "pods": 1, resource.Name(fmt.Sprintf("r%d", i)): 1}
				n.Labels = map[string]string{"kind": fmt.Sprint(i)}
			})
		}
		s.now = s.now.Add(time.Minute)
		set := podSet("workers", workload.RoleWorker, 3)
		set.Template.Affinity = []workload.NodeTerm{{Labels: []workload.Requirement{{Key: "kind", Operator: "Exists"}}}}
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: "one", Queue: "q", Kind: "RayCluster", Name: "one", PodSets: []workload.PodSet{set},
		}}, nil, s.now)
		s.step(0)
		if c := s.lastEvent("one").Certificate; c != nil {
			t.Errorf("there is a certificate of %d bytes", len(c))
		}
	})
}
