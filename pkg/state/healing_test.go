package state

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A place that is lost before anything has started is replaced in one step.
func TestAPlaceLostBeforeTheStartIsReplaced(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *stage, node string){
		"gone": func(s *stage, n string) {
			s.removeNode(n)
		},
		"cordoned": func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Cordoned = true }) },
		"tainted": func(s *stage, n string) {
			s.node(n, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: "k", Effect: "NoExecute"}} })
		},
		"not ready":       func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Ready = false }) },
		"taken by others": func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Unmanaged = resource.List{"cpu": 1} }) },
		"drained": func(s *stage, n string) {
			s.node(n, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
		},
	} {
		for _, set := range []string{"headgroup", "workers"} {
			for _, phase := range []workload.Phase{workload.Admitted, workload.Dispatched} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, set, phase), func(t *testing.T) {
					t.Parallel()
					losesPlaceBeforeTheStart(t, set, phase, lose)
				})
			}
		}
	}
}

func losesPlaceBeforeTheStart(t *testing.T, set string, phase workload.Phase, lose func(s *stage, node string)) {
	begin := func() *stage {
		s := newStage(t, workload.Rules{}, 3)
		if phase == workload.Dispatched {
			s.created(false)
		}
		return s
	}
	s := begin()
	s.node("spare", nil)
	s.Flush()
	lost, admitted := s.place(set), s.gang().Times.Admitted
	lose(s, lost)
	s.step(settleTime)
	s.is(phase, workload.ReasonPlaceLost)
	s.reasonHas(lost, "other places are reserved instead")
	if got := s.gang().Times.Admitted; !got.Equal(admitted) {
		t.Errorf("after the move it is admitted at %s, want %s as before", got, admitted)
	}
	changes := s.Flush()
	var spare bool
	for _, r := range changes.Replaced {
		spare = spare || r.Node == "spare" && r.PodSet == set
		if r.Node == lost {
			t.Errorf("%s still has a place on %s", r.PodSet, lost)
		}
	}
	if len(changes.Replaced) != 3 || !spare {
		t.Errorf("the reservations are %+v", changes.Replaced)
	}
	// Once it runs, its reason does not name the move any more.
	s.created(true)
	if s.is(workload.Running, ""); s.gang().Reason != nil {
		t.Errorf("it runs, with the reason %+v", s.gang().Reason)
	}

	// Without another place it goes back to the queue.
	s = begin()
	lose(s, s.place(set))
	s.step(settleTime)
	s.is(workload.Evicting, "")
	s.released()
	s.is(workload.Queued, "")
	if e := s.gang(); e.Requeues != 0 || !e.NotBefore.IsZero() {
		t.Errorf("the loss is held against it: %d requeues, not before %s", e.Requeues, e.NotBefore)
	}
}

// A move does not hide what keeps a gang from starting.
func TestASlowStartIsExplainedAfterAMove(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("spare", nil)
	s.node(s.place("workers"), func(n *capacity.Node) { n.Cordoned = true })
	s.step(settleTime)
	s.is(workload.Dispatched, workload.ReasonPlaceLost)
	s.pass(slowStart)
	s.is(workload.Dispatched, workload.ReasonStarting)
}

// Of a running gang a worker's place is replaced; the head stays. Where the head
// was, the gang begins again.
func TestARunningGangIsHealed(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.is(workload.Running, "")
	s.node("spare", nil)
	head, lost := s.place("headgroup"), s.place("workers")
	s.Flush()
	s.removeNode(lost)
	s.is(workload.Running, workload.ReasonPodLost)
	if command := s.commanded(); command.State != event.Present || s.place("headgroup") != head {
		t.Errorf("commanded %s, head on %s", command.State, s.place("headgroup"))
	}
	s.loses("workers", lost)
	s.run()
	s.is(workload.Running, "")
	if s.gang().Reason != nil || s.gang().Attempt != 1 {
		t.Errorf("healed it has the reason %+v, attempt %d", s.gang().Reason, s.gang().Attempt)
	}
	s.removeNode(head)
	s.is(workload.Evicting, workload.ReasonNodeLost)
}

// A cordoned node keeps the pods it has; the replacement of one that leaves goes
// elsewhere.
func TestACordonedNodeIsLeftWhenItsPodsGo(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.node("spare", nil)
	node := s.place("workers")
	s.node(node, func(n *capacity.Node) { n.Cordoned = true })
	s.step(time.Minute)
	s.is(workload.Running, "")
	if s.gang().Reason != nil || s.place("workers") != node {
		t.Errorf("cordoned: reason %+v, place %s", s.gang().Reason, s.place("workers"))
	}
	s.loses("workers", node)
	s.step(settleTime)
	s.is(workload.Running, workload.ReasonPodLost)
	for _, p := range s.gang().Placements {
		if p.Node == node {
			t.Errorf("%s has a place on the cordoned node", p.PodSet)
		}
	}
}

// Lost pods: healing waits for KubeRay up to the ready deadline; the policy evict
// does not wait.
func TestLostPodsAreReplacedOrEvictTheGang(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.created(true)
	s.loses("workers", "")
	s.step(settleTime)
	s.is(workload.Running, workload.ReasonPodLost)
	s.step(57 * time.Second)
	s.is(workload.Running, workload.ReasonPodLost)
	s.step(time.Second)
	s.is(workload.Evicting, workload.ReasonPodLost)
	if s.gang().Requeues != 1 {
		t.Errorf("counted %d requeues", s.gang().Requeues)
	}

	s = newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, 3)
	s.created(true)
	for name, pod := range s.pods { // a pod that is not ready is not lost
		pod.Ready = false
		s.pods[name] = pod
	}
	s.observe()
	s.step(time.Minute)
	s.is(workload.Running, workload.ReasonPodLost)
	s.loses("workers", "")
	s.is(workload.Running, "")
	s.step(settleTime)
	s.is(workload.Evicting, workload.ReasonPodLost)
}

// A drained node is emptied after the announcement: workers move, a head's gang
// is evicted.
func TestADrainedNodeIsEmptied(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"workers", "headgroup"} {
		t.Run(set, func(t *testing.T) {
			s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
			s.created(true)
			s.node("spare", nil)
			s.Flush()
			node := s.place(set)
			s.node(node, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
			s.is(workload.Running, workload.ReasonDrained)
			if command := s.commanded(); command.EvictAt.IsZero() {
				t.Errorf("%s: announced with %+v", set, command)
			}
			s.step(30 * time.Second)
			if set == "headgroup" {
				s.is(workload.Evicting, workload.ReasonDrained)
				return
			}
			s.is(workload.Running, workload.ReasonPodLost)
			if command := s.commanded(); command.State != event.Present || !command.EvictAt.IsZero() {
				t.Errorf("moved with %+v", command)
			}
		})
	}
}

// A drain that ends before the announced time moves nothing, and the announcement is
// withdrawn then.
func TestAnAnnouncedMoveIsWithdrawnWhenTheDrainEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
	s.created(true)
	node := s.place("workers")
	s.node(node, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
	s.is(workload.Running, workload.ReasonDrained)
	s.step(time.Second)
	s.node(node, nil)
	s.Flush()
	s.step(29 * time.Second)
	if reason := s.gang().Reason; reason != nil || s.place("workers") != node {
		t.Errorf("after the drain its reason is %+v, and its place %s", reason, s.place("workers"))
	}
	if command := s.commanded(); command == nil || command.State != event.Present || !command.EvictAt.IsZero() {
		t.Errorf("commanded %+v", command)
	}
}

// A replacement stays in the domain that the pod set requires; elsewhere there is
// no place for it.
func TestAReplacementStaysInItsDomain(t *testing.T) {
	t.Parallel()
	in := func(rack string) func(*capacity.Node) {
		return func(n *capacity.Node) { n.Labels = map[string]string{"rack": rack} }
	}
	for rack, want := range map[string]workload.Phase{"a": workload.Running, "b": workload.Evicting} {
		t.Run("rack "+rack, func(t *testing.T) {
			s := newStage(t, workload.Rules{}, 0)
			s.live.Get(gangID).PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
			s.admission.Enqueue(admission.Waiting{Workload: &s.live.Get(gangID).Workload, Order: 1})
			for i := range 3 {
				s.node(fmt.Sprintf("a%d", i), in("a"))
			}
			s.step(0)
			s.created(true)
			s.is(workload.Running, "")
			s.node("spare", in(rack))
			s.removeNode(s.place("workers"))
			s.is(want, "")
		})
	}
}

// The command says which domain each place of a slice is in, so that the pods of
// one replica are sent there together.
func TestPlacesOfSlicesAreCommandedWithTheirDomain(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	s.live.Get(gangID).PodSets[1].Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"}
	s.admission.Enqueue(admission.Waiting{Workload: &s.live.Get(gangID).Workload, Order: 1})
	for i := range 3 {
		s.node(fmt.Sprintf("n%d", i), func(n *capacity.Node) { n.Labels = map[string]string{"rack": "a"} })
	}
	s.step(0)
	for _, place := range s.commanded().Placements {
		if want := map[string]string{"headgroup": "", "workers": "a"}[place.PodSet]; place.Domain != want {
			t.Errorf("the place of %s on %s is in domain %q, want %q", place.PodSet, place.Node, place.Domain, want)
		}
	}
}

// A new term does not know what runs where before it has read that: until then no
// pod gets another place, which might be taken; afterwards it gets one at once.
func TestNoPlaceIsReplacedWhileAStateCatchesUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(false)
	s.node("spare", nil)
	s.Flush()
	lost := s.place("workers")
	s.CatchUp()
	s.removeNode(lost)
	s.step(settleTime)
	if replaced := s.Flush().Replaced; len(replaced) > 0 || s.gang().Phase != workload.Dispatched {
		t.Errorf("while it catches up the gang is %s, and these places are reserved: %+v", s.gang().Phase, replaced)
	}
	s.BeginDecisions(s.now)
	s.step(0)
	changes := s.Flush()
	if s.is(workload.Dispatched, ""); len(changes.Replaced) != 3 || s.place("workers") == lost {
		t.Errorf("after it has caught up these places are reserved: %+v", changes.Replaced)
	}
	if len(changes.Nodes) < 3 {
		t.Errorf("the rows of %d nodes are written again", len(changes.Nodes))
	}
}
