package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// drain taints a node, so that Muster empties it.
func drain(n *capacity.Node) {
	n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}}
}

// usesNode reports whether the gang has a place on a node.
func (s *stage) usesNode(node string) bool {
	for _, p := range s.gang().Placements {
		if p.Node == node {
			return true
		}
	}
	return false
}

// workerNodes are the nodes of the two workers.
func (s *stage) workerNodes() (first, second string) {
	var nodes []string
	for _, p := range s.gang().Placements {
		if p.PodSet == "workers" {
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) != 2 {
		s.Fatalf("the workers are on %v, want two nodes", nodes)
	}
	return nodes[0], nodes[1]
}

// An operator may cordon a node and taint it a moment later. The pods of a running gang keep
// their grace all the same.
func TestADrainIsAnnouncedWhileACordonSettles(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"workers", "headgroup"} {
		t.Run(set, func(t *testing.T) {
			s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
			s.created(true)
			s.node("spare", nil)
			node := s.place(set)
			s.node(node, func(n *capacity.Node) { n.Cordoned = true })
			s.step(time.Second)
			s.Flush()
			drained := s.now
			s.node(node, func(n *capacity.Node) { n.Cordoned = true; drain(n) })
			s.is(workload.Running, workload.ReasonDrained)
			if command := s.commanded(); command == nil || !command.EvictAt.Equal(drained.Add(30*time.Second)) {
				t.Errorf("%s: announced with %+v", set, command)
			}
			s.step(29 * time.Second)
			if s.is(workload.Running, workload.ReasonDrained); !s.usesNode(node) {
				t.Errorf("%s: the pods are moved before the announced time", set)
			}
			s.step(time.Second)
			if s.gang().Phase == workload.Running && s.usesNode(node) {
				t.Errorf("%s: the pods are not moved at the announced time", set)
			}
		})
	}
}

// A node that is lost during the grace of a drain takes its pods with it, so they are
// moved at once. Those on the drained node keep the announced time.
func TestALossDoesNotWaitForTheGraceOfADrain(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
	s.created(true)
	s.node("spare", nil)
	drained, lost := s.workerNodes()
	s.node(drained, drain)
	announced := s.now.Add(30 * time.Second)
	s.step(5 * time.Second)
	s.Flush()
	s.removeNode(lost)
	s.is(workload.Running, workload.ReasonPodLost)
	if s.usesNode(lost) || !s.usesNode(drained) || !s.usesNode("spare") {
		t.Fatalf("after the loss the places are %+v", s.gang().Placements)
	}
	if command := s.commanded(); command == nil || command.State != event.Present || !command.EvictAt.Equal(announced) {
		t.Errorf("commanded %+v, want the announced time %s", command, announced)
	}
	s.loses("workers", lost)
	s.run()
	s.node("other", nil)
	s.step(24 * time.Second)
	if s.is(workload.Running, ""); !s.usesNode(drained) {
		t.Error("the drained pods are moved before the announced time")
	}
	s.step(time.Second)
	if s.is(workload.Running, workload.ReasonPodLost); s.usesNode(drained) || !s.usesNode("other") {
		t.Errorf("at the announced time the places are %+v", s.gang().Placements)
	}
	if command := s.commanded(); command == nil || !command.EvictAt.IsZero() {
		t.Errorf("moved with %+v", command)
	}
}

// The drained node itself may be lost during the grace.
func TestADrainedNodeThatIsLostIsLeftAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
	s.created(true)
	s.node("spare", nil)
	node := s.place("workers")
	s.node(node, drain)
	s.step(time.Second)
	s.removeNode(node)
	if s.is(workload.Running, workload.ReasonPodLost); s.usesNode(node) {
		t.Errorf("after the loss the places are %+v", s.gang().Placements)
	}
}

// A pod may leave another barred node, or the drained one, during the grace. Its
// replacement, which would not be admitted there, does not wait for the announced time.
func TestAPodThatLeavesDuringTheGraceOfADrainIsReplaced(t *testing.T) {
	t.Parallel()
	for name, cordon := range map[string]bool{"cordoned": true, "drained": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
			s.created(true)
			s.node("spare", nil)
			drained, node := s.workerNodes()
			if cordon {
				s.node(node, func(n *capacity.Node) { n.Cordoned = true })
			} else {
				drained = node
			}
			s.node(drained, drain)
			s.step(5 * time.Second)
			s.loses("workers", node)
			s.step(settleTime)
			if s.is(workload.Running, workload.ReasonPodLost); s.usesNode(node) || cordon && !s.usesNode(drained) {
				t.Errorf("%s: after the pod has left the places are %+v", name, s.gang().Placements)
			}
		})
	}
}
