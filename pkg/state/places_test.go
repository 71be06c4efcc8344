package state

import (
	"strings"
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

// The reason of a gang on a node that is not ready announces what follows, and that comes
// when the grace of the node is over. There is a spare node all along.
func TestWhatIsAnnouncedForANodeThatIsNotReadyComesTrue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set       string
		rules     workload.Rules
		change    func(*stage)
		announced string
		phase     workload.Phase
		reason    workload.ReasonKind
		then      string
	}{
		"a worker moves": {"workers", workload.Rules{}, nil,
			"its pods get other nodes", workload.Running, workload.ReasonPodLost, "its pods are moved to other nodes"},
		"the head is lost": {"headgroup", workload.Rules{}, nil,
			"because its head pod is there", workload.Evicting, workload.ReasonNodeLost, "has not been ready"},
		"the queue's rule": {"workers", workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, nil,
			"because onPodLoss is evict", workload.Evicting, workload.ReasonNodeLost, "has not been ready"},
		"the submitter is lost": {"workers", workload.Rules{}, func(s *stage) { s.gang().PodSets[1].Role = workload.RoleSubmitter },
			"because the submitter of the job is there", workload.Evicting, workload.ReasonNodeLost, "has not been ready"},
		"tied pods": {"workers", workload.Rules{}, func(s *stage) {
			s.gang().PodSets[1].Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"}
		}, "the places of its pods depend on each other", workload.Evicting, workload.ReasonNodeLost, "no pod of the gang is moved alone, because the places of its pods depend on each other"},
		"fixed places": {"workers", workload.Rules{}, func(s *stage) {
			s.Quarantine(Quarantined{Workload: gangID, Level: QuarantineHeld, Attempt: 1, Why: "no"}, s.now)
		}, "the gang keeps its places", workload.Running, workload.ReasonNotStorable, "the gang keeps its places"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.rules, 3)
			s.created(true)
			s.node("spare", nil)
			if c.change != nil {
				c.change(s)
			}
			s.node(s.place(c.set), func(n *capacity.Node) { n.Ready = false })
			s.is(workload.Running, workload.ReasonNodeNotReady)
			s.reasonHas(c.announced)
			s.step(time.Minute)
			s.is(c.phase, c.reason)
			if s.reasonHas(c.then); c.phase == workload.Evicting && strings.Contains(s.gang().Reason.Message, "no other place is free") {
				t.Errorf("the spare node was free, and the reason is %q", s.gang().Reason.Message)
			}
		})
	}
}
