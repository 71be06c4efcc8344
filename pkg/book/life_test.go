package book

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// stage is a book with nodes and a gang of a head and two workers, each of which
// fills a node.
type stage struct {
	*testing.T
	*Book
	now  time.Time
	seq  uint64
	pods map[string]event.GangPod
}

const gangID workload.ID = "w"

// newStage has so many nodes n0, n1, ... and submits the gang under the rules.
func newStage(t *testing.T, rules workload.Rules, nodes int) *stage {
	t.Helper()
	s := &stage{T: t, now: time.Unix(1_000_000, 0), pods: map[string]event.GangPod{}}
	s.Book = New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{
		{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO, Rules: rules},
	}})
	for i := range nodes {
		s.node(fmt.Sprintf("n%d", i), nil)
	}
	set := func(name, role string, count int) workload.PodSet {
		return workload.PodSet{Name: name, Role: role, Count: count, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}
	}
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: gangID, Queue: "q", Kind: "RayCluster", Name: "gang",
		PodSets: []workload.PodSet{set("headgroup", workload.RoleHead, 1), set("workers", workload.RoleWorker, 2)},
	}}, nil, s.now)
	s.step(0)
	return s
}

// node reports a node of 4 CPUs, changed as given.
func (s *stage) node(name string, change func(*capacity.Node)) {
	s.seq++
	n := capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}
	if change != nil {
		change(&n)
	}
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: n}, s.now)
}

// step lets so much time pass.
func (s *stage) step(d time.Duration) {
	s.now = s.now.Add(d)
	s.Tick(s.now, time.Minute)
	s.Decide(s.now)
}

// created reports the object, and all pods on their places when they shall run.
func (s *stage) created(run bool) {
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true}, s.now, s.now)
	if run {
		s.run()
	}
}

// run puts every pod that is missing onto a free place of its set.
func (s *stage) run() {
	s.Helper()
	clear(s.pods)
	for _, p := range s.gang().Placements {
		for range p.Pods {
			name := fmt.Sprintf("%s-%d", p.PodSet, len(s.pods))
			s.pods[name] = event.GangPod{Name: name, PodSet: p.PodSet, Node: p.Node, Phase: "Running", Ready: true, Requests: resource.List{"cpu": 4, "pods": 1}}
		}
	}
	s.observe()
}

func (s *stage) observe() {
	s.seq++
	o := &event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID}
	for _, pod := range s.pods {
		pod.Attempt = s.gang().Attempt
		o.Pods = append(o.Pods, pod)
	}
	s.Gang(o, s.now, s.now)
}

// loses takes the pods of a set on a node away; empty is any node.
func (s *stage) loses(set, node string) {
	for name, pod := range s.pods {
		if pod.PodSet == set && (node == "" || pod.Node == node) {
			delete(s.pods, name)
		}
	}
	s.observe()
}

func (s *stage) released() {
	clear(s.pods)
	s.observe()
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true, Gone: true, Released: true}, s.now, s.now)
}

func (s *stage) gang() *entry {
	s.Helper()
	e := s.live[gangID]
	if e == nil {
		s.Fatal("the gang is not live any more")
	}
	return e
}

// place returns a node that the set has a place on.
func (s *stage) place(set string) string {
	s.Helper()
	for _, p := range s.gang().Placements {
		if p.PodSet == set {
			return p.Node
		}
	}
	s.Fatalf("set %s has no place", set)
	return ""
}

func (s *stage) is(phase workload.Phase, kind workload.ReasonKind) {
	s.Helper()
	e := s.gang()
	if e.Phase != phase || kind != "" && (e.Reason == nil || e.Reason.Kind != kind) {
		s.Fatalf("the gang is %s because of %+v, want %s because of %s", e.Phase, e.Reason, phase, kind)
	}
}

// commanded returns the last command of what has been written since the last
// call.
func (s *stage) commanded() *event.GangDesired {
	var last *event.GangDesired
	for _, m := range s.Take().Messages {
		if command, ok := m.Payload.(*event.GangDesired); ok {
			last = command
		}
	}
	return last
}

func seconds(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }

func limit(n int) *int { return &n }

// A gang that does not become ready is torn down whole, waits longer each time,
// and has failed after the last time, with the cause.
func TestAGangThatIsNotReadyInTimeIsQueuedAgainAndFailsInTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{
		Life: workload.Life{ReadyDeadline: seconds(100)}, Requeues: limit(2), BackoffFirst: seconds(10), BackoffMost: seconds(15),
	}, 3)
	for _, backoff := range []int{10, 15} {
		s.is(workload.Admitted, "")
		s.created(false)
		s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending"}
		s.observe()
		s.step(99 * time.Second)
		s.is(workload.Dispatched, workload.ReasonStarting)
		s.step(time.Second)
		s.is(workload.Evicting, workload.ReasonNotReady)
		if command := s.commanded(); command == nil || command.State != event.Absent {
			t.Fatalf("commanded is %+v, want it absent", command)
		}
		s.released()
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(time.Duration(backoff)*time.Second - time.Millisecond)
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(time.Millisecond)
	}
	s.created(false)
	s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending"}
	s.observe()
	s.step(100 * time.Second)
	s.is(workload.Evicting, workload.ReasonNotReady)
	s.Take()
	s.released()
	changes := s.Take()
	last := changes.Updated[0]
	if last.Phase != workload.Failed || last.Reason.Kind != workload.ReasonNotReady || !strings.Contains(last.Reason.Message, "0 of 3 pods were ready") {
		t.Errorf("it ended as %s because of %+v", last.Phase, last.Reason)
	}
}

// An operator that is away fails nobody: its gangs wait and are tried again, as
// often as it takes.
func TestAnOperatorThatIsAwayFailsNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{
		Life: workload.Life{ReadyDeadline: seconds(100)}, Requeues: limit(0), BackoffFirst: seconds(1), BackoffMost: seconds(2),
	}, 3)
	for range 5 {
		s.created(false)
		s.step(100 * time.Second)
		s.is(workload.Evicting, workload.ReasonNotCreated)
		s.released()
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(2 * time.Second)
		s.is(workload.Admitted, "")
	}
}

// A back-off survives a change of leaders, and a cancellation ends it.
func TestABackoffIsKept(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(100)}, BackoffFirst: seconds(10)}, 3)
	s.created(false)
	s.step(100 * time.Second)
	s.released()
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, Workloads: []StoredWorkload{{s.gang().Record, 1}}}
	for key, n := range s.nodes {
		stored.Nodes = append(stored.Nodes, StoredNode{n.Node, n.version, n.present})
		_ = key
	}
	s.Book = New(2, stored)
	s.step(9 * time.Second)
	s.is(workload.Queued, workload.ReasonBackoff)
	s.step(time.Second)
	s.is(workload.Admitted, "")

	s.Book = New(3, stored)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	if s.live[gangID] != nil {
		t.Errorf("after its cancellation in back-off the gang is %s", s.live[gangID].Phase)
	}
	s.step(time.Hour)
}

// A place that is lost before anything has started is replaced in one step.
func TestAPlaceLostBeforeTheStartIsReplaced(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *stage, node string){
		"gone": func(s *stage, n string) {
			s.seq++
			s.NodeRemoved(&event.NodeRemoved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Node: n}, s.now)
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
			s := newStage(t, workload.Rules{}, 3)
			s.created(false)
			s.node("spare", nil)
			s.Take()
			lost := s.place(set)
			lose(s, lost)
			s.step(settle)
			s.is(workload.Dispatched, "")
			changes := s.Take()
			var spare bool
			for _, r := range changes.Moved {
				spare = spare || r.Node == "spare" && r.PodSet == set
				if r.Node == lost {
					t.Errorf("%s, %s: %s still has a place on %s", name, set, r.PodSet, lost)
				}
			}
			if len(changes.Moved) != 3 || !spare {
				t.Errorf("%s, %s: the reservations are %+v", name, set, changes.Moved)
			}
			// Without another place it goes back to the queue.
			s.released()
			s = newStage(t, workload.Rules{}, 3)
			s.created(false)
			lose(s, s.place(set))
			s.step(settle)
			if phase := s.gang().Phase; phase != workload.Evicting {
				t.Errorf("%s, %s: without another place it is %s", name, set, phase)
			}
			s.released()
			s.is(workload.Queued, "")
			if e := s.gang(); e.Requeues != 0 || !e.NotBefore.IsZero() {
				t.Errorf("%s, %s: the loss is held against it: %d requeues, not before %s", name, set, e.Requeues, e.NotBefore)
			}
		}
	}
}

// Of a running gang a worker's place is replaced; the head stays. Where the head
// was, the gang begins anew.
func TestARunningGangIsHealed(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.is(workload.Running, "")
	s.node("spare", nil)
	head, lost := s.place("headgroup"), s.place("workers")
	s.Take()
	s.seq++
	s.NodeRemoved(&event.NodeRemoved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Node: lost}, s.now)
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
	s.seq++
	s.NodeRemoved(&event.NodeRemoved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Node: head}, s.now)
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
	s.step(settle)
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
	s.step(settle)
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
	s.step(settle)
	s.is(workload.Evicting, workload.ReasonPodLost)
}

// A job that ends loses its pods, too; that is no loss.
func TestTheEndOfAJobIsNoLoss(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}, KeepFinished: seconds(60)}, 3)
	s.created(true)
	s.loses("workers", "")
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeSucceeded}, s.now, s.now)
	s.step(settle)
	s.is(workload.Succeeded, workload.ReasonJobEnded)
	// Its cluster stays for so long, then it is shut down.
	s.Take()
	s.step(57 * time.Second)
	if command := s.commanded(); command != nil {
		t.Errorf("too early: %+v", command)
	}
	s.step(2 * time.Second)
	if command := s.commanded(); command == nil || command.State != event.Ended {
		t.Errorf("commanded is %+v, want the end of the cluster", command)
	}
	s.step(time.Hour)
	if command := s.commanded(); command != nil {
		t.Errorf("commanded twice: %+v", command)
	}
}

// What could run on is told before it is deleted.
func TestEvictionsAreAnnounced(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30), MaxRunTime: seconds(1000)}}, 3)
	s.created(true)
	s.Take()
	s.evict(s.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "test"}, s.now)
	s.is(workload.Evicting, workload.ReasonDrained)
	command := s.commanded()
	if command.State != event.Present || !command.EvictAt.Equal(s.now.Add(30*time.Second)) {
		t.Errorf("announced with %+v", command)
	}
	s.step(29 * time.Second)
	if command := s.commanded(); command != nil {
		t.Errorf("too early: %+v", command)
	}
	s.step(time.Second)
	if command := s.commanded(); command == nil || command.State != event.Absent {
		t.Errorf("after the grace commanded is %+v", command)
	}
	s.released()
	s.is(workload.Queued, workload.ReasonDrained)
	s.step(0)
	// The second attempt runs as long as it may.
	s.created(true)
	s.step(1000 * time.Second)
	s.is(workload.Cancelling, workload.ReasonMaxRunTime)
	if command := s.commanded(); command.State != event.Present || command.EvictAt.IsZero() {
		t.Errorf("its end is announced with %+v", command)
	}
	s.step(30 * time.Second)
	s.Take()
	s.released()
	if last := s.Take().Updated[0]; last.Phase != workload.Cancelled || last.Reason.Kind != workload.ReasonMaxRunTime {
		t.Errorf("it ended as %s because of %+v", last.Phase, last.Reason)
	}
}

// A drained node is emptied after the announcement: workers move, a head's gang
// is evicted.
func TestADrainedNodeIsEmptied(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"workers", "headgroup"} {
		s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
		s.created(true)
		s.node("spare", nil)
		s.Take()
		node := s.place(set)
		s.node(node, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
		s.is(workload.Running, workload.ReasonDrained)
		if command := s.commanded(); command.EvictAt.IsZero() {
			t.Errorf("%s: announced with %+v", set, command)
		}
		s.step(30 * time.Second)
		if set == "headgroup" {
			s.is(workload.Evicting, workload.ReasonDrained)
			continue
		}
		s.is(workload.Running, workload.ReasonPodLost)
		if command := s.commanded(); command.State != event.Present || !command.EvictAt.IsZero() {
			t.Errorf("moved with %+v", command)
		}
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
		s := newStage(t, workload.Rules{}, 0)
		s.live[gangID].PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
		s.admission.Enqueue(admission.Waiting{Workload: &s.live[gangID].Workload, Order: 1})
		for i := range 3 {
			s.node(fmt.Sprintf("a%d", i), in("a"))
		}
		s.step(0)
		s.created(true)
		s.is(workload.Running, "")
		s.node("spare", in(rack))
		s.seq++
		s.NodeRemoved(&event.NodeRemoved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Node: s.place("workers")}, s.now)
		s.is(want, "")
	}
}

// The command says which domain each place of a slice is in, so that the pods of
// one replica are sent there together.
func TestPlacesOfSlicesAreCommandedWithTheirDomain(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 0)
	s.live[gangID].PodSets[1].Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"}
	s.admission.Enqueue(admission.Waiting{Workload: &s.live[gangID].Workload, Order: 1})
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

// A job whose head is replaced begins anew, because Ray has forgotten it; a
// cluster does not, and neither does a job that KubeRay tries again with another
// RayCluster.
func TestAJobWithoutItsHeadBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, rayCluster string
		want             workload.Phase
	}{
		{"RayJob", "a", workload.Evicting}, {"RayJob", "b", workload.Running}, {"RayCluster", "a", workload.Running},
	} {
		s := newStage(t, workload.Rules{}, 3)
		s.gang().Kind = c.kind
		s.created(true)
		for _, step := range []struct{ name, rayCluster string }{{"head", "a"}, {"", ""}, {"new-head", c.rayCluster}} {
			s.loses("headgroup", "")
			if step.name != "" {
				s.pods[step.name] = event.GangPod{Name: step.name, PodSet: "headgroup", RayCluster: step.rayCluster, Node: s.place("headgroup"),
					Phase: "Running", Ready: true, Requests: resource.List{"cpu": 4, "pods": 1}}
			}
			s.observe()
		}
		s.step(settle)
		if got := s.gang().Phase; got != c.want {
			t.Errorf("%s with its next head in RayCluster %s is %s, want %s", c.kind, c.rayCluster, got, c.want)
		}
	}
}

// A cluster that its owner makes smaller has lost nothing: it runs on, and as long
// as the dispatcher does not tell what is to be kept it keeps its places.
func TestASmallerClusterIsWhole(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.created(true)
	s.loses("workers", s.place("workers"))
	s.step(settle)
	s.is(workload.Running, workload.ReasonPodLost)
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Sizes: map[string]int{"workers": 1}}, s.now, s.now)
	s.step(time.Hour)
	s.is(workload.Running, "")
	if e := s.gang(); e.Reason != nil || len(e.Placements) != 3 {
		t.Errorf("reason %+v, places %v", e.Reason, e.Placements)
	}
}

// KubeRay's retry of a job takes all pods of its RayCluster away; that is no lost
// pod, also to a job that asks to be evicted for one.
func TestARetryOfKubeRayIsNoLoss(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, 3)
		s.gang().Kind = "RayJob"
		s.created(true)
		s.loses("workers", "")
		if all {
			s.loses("headgroup", "")
		}
		s.step(settle)
		want := workload.Evicting
		if all {
			want = workload.Running
		}
		s.is(want, workload.ReasonPodLost)
	}
}
