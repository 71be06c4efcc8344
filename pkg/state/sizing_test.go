package state

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// sizes reports how many workers the owner wants now.
func (s *stage) sizes(workers int, change ...func(*event.GangStatus)) {
	status := &event.GangStatus{
		Workload: gangID, Cluster: "c", Attempt: s.gang().Attempt, Created: true, Epoch: s.epoch,
		Sizes: map[string]int{"workers": workers}, Keeps: map[string]int{"workers": workers},
	}
	for _, c := range change {
		c(status)
	}
	s.Status(status, s.now, s.now)
	s.step(0)
}

// obeys repeats the yield of a command.
func obeys(command *event.GangCommand) func(*event.GangStatus) {
	return func(status *event.GangStatus) { status.Yielded = command.Yield }
}

// has checks how many workers have a place, and that these are on as many nodes.
func (s *stage) has(workers int) {
	s.Helper()
	e := s.gang()
	placed := 0
	for _, p := range e.Placements {
		if p.PodSet == "workers" {
			placed += p.Pods
		}
	}
	if e.PodSets[1].Count != workers || placed != workers {
		s.Fatalf("%d workers have a place, of %d, want %d: %v", placed, e.PodSets[1].Count, workers, e.Placements)
	}
}

// another submits a gang of one pod that fills a node.
func (s *stage) another(id workload.ID) {
	s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
		ID: id, Queue: "q", Kind: "RayCluster", Name: string(id),
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, s.now)
	s.step(0)
}

// Sizes that no cluster has are refused before they are added up, and a number below none is none.
func TestAbsurdSizesAreRefused(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"the largest number": math.MaxInt, "half of it": math.MaxInt / 2, "more than NATS takes": 1<<20 + 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(true)
			s.sizes(size)
			s.is(workload.Running, workload.ReasonGrowing)
			if e := s.gang(); e.growth != nil || !strings.Contains(e.Reason.Message, "exceeds") {
				t.Errorf("it requests %+v; the reason is %+v", e.growth, e.Reason)
			}
		})
	}
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(math.MinInt)
	if e := s.gang(); e.PodSets[1].Count < 0 || e.growth != nil {
		t.Errorf("it has %d workers and requests %+v", e.PodSets[1].Count, e.growth)
	}
}

// A gang that wants more pods gets places for all of them in one change, or none
// and says what it waits for; it runs on all the while.
func TestAGangGrowsByAllOrNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(4)
	s.is(workload.Running, workload.ReasonGrowing)
	if reason := s.gang().Reason; !strings.Contains(reason.Message, `2 more of "workers"`) || reason.Shortage == nil || reason.Shortage.Unplaced != 2 {
		t.Errorf("the reason is %+v", reason)
	}
	s.node("n3", nil)
	s.step(0)
	s.is(workload.Running, workload.ReasonGrowing)
	s.has(2)
	s.Flush()
	s.node("n4", nil)
	s.step(0)
	s.is(workload.Running, "")
	s.has(4)
	changes := s.Flush()
	if len(changes.Replaced) != 5 || len(changes.Reserved) != 0 {
		t.Errorf("written are %+v and %+v, want the five places of the gang", changes.Replaced, changes.Reserved)
	}
	if s.gang().Reason != nil {
		t.Errorf("it has grown, and its reason is %+v", s.gang().Reason)
	}
	command, ok := changes.Messages[len(changes.Messages)-1].Payload.(*event.GangCommand)
	if !ok || len(command.Placements) != 5 || command.PodSets[1].Count != 4 || command.PodSets[1].AtStart() != 2 || command.Yield != "" {
		t.Errorf("commanded %+v", command)
	}
	s.sizes(4) // again
	s.run()
	if changes := s.Flush(); len(changes.Replaced) != 0 {
		t.Errorf("the same sizes again moved %+v", changes.Replaced)
	}
}

// What waits of a gang that grows gives way to who came before, and takes nothing
// back from no other when it is not wanted any more.
func TestAGrowingGangStandsInLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	strict := s.queues["q"]
	strict.Strategy = quota.StrictFIFO
	s.State = New(2, Stored{MaxEvent: 1 << 20, Queues: []Queue{strict}, LastOrder: s.lastOrder,
		Workloads: []StoredWorkload{{Record: s.gang().Record, Order: s.gang().order}}})
	for _, name := range []string{"n0", "n1", "n2"} {
		s.node(name, nil)
	}
	s.created(true)
	s.another("before")
	s.sizes(3)
	s.is(workload.Running, workload.ReasonGrowing)
	s.another("behind")
	s.sizes(4) // another size keeps the place in line
	s.sizes(3)
	s.node("n3", nil)
	s.step(0)
	if e := s.live.Get("before"); e.Phase != workload.Admitted {
		t.Errorf("who came before the growth is %s because of %+v", e.Phase, e.Reason)
	}
	if explained, err := s.Explain(gangID, s.now); err != nil || explained.Position != 1 || explained.Reason.Kind != workload.ReasonGrowing ||
		!strings.Contains(explained.Reason.Message, `1 more of "workers" wait at their scheduling gates: 1 of 1 pods of pod set "workers" do not fit`) {
		t.Errorf("explained %+v, %v", explained, err)
	}
	s.sizes(2) // not wanted any more
	s.is(workload.Running, "")
	s.node("n4", nil)
	s.step(0)
	s.has(2)
	if e := s.live.Get("behind"); e.Phase != workload.Admitted {
		t.Errorf("who came behind is %s because of %+v", e.Phase, e.Reason)
	}
}

// A place is given up when its pod is gone and the dispatcher sends none there any
// more, and not before: a waiting gang gets it then.
func TestAGangShrinksWhenItsPodsAreGone(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, 3)
	s.created(true)
	s.another("next")
	s.Flush()
	s.sizes(1)
	if command := s.commanded(); command != nil {
		t.Fatalf("with both workers there it commands %+v", command)
	}
	s.loses("workers", s.place("workers"))
	s.step(0)
	s.has(2)
	command := s.commanded()
	if command == nil || command.Yield == "" || len(command.Placements) != 2 || command.PodSets[1].Count != 1 {
		t.Fatalf("commanded is %+v, want the head and a worker", command)
	}
	s.sizes(1, func(status *event.GangStatus) { status.Yielded = "1-1" }) // of another command
	s.sizes(1, obeys(command), func(status *event.GangStatus) { status.Attempt-- })
	s.has(2)
	s.sizes(1, obeys(command))
	s.has(1)
	changes := s.Flush()
	if len(changes.Replaced) != 2 {
		t.Errorf("written are %+v, want two places", changes.Replaced)
	}
	s.sizes(1, obeys(command)) // twice
	if s.live.Get("next").Phase != workload.Admitted {
		t.Errorf("who waits for the place is %s", s.live.Get("next").Phase)
	}
	s.step(time.Hour)
	s.is(workload.Running, "") // a pod that is not wanted is no loss

	s.sizes(2)
	s.is(workload.Running, workload.ReasonGrowing)
}

// Wanted again before the dispatcher has heard of it, a place is kept.
func TestAPlaceIsWantedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(1)
	s.loses("workers", s.place("workers"))
	s.step(0)
	first := s.commanded()
	s.sizes(2)
	again := s.commanded()
	if again == nil || again.Yield != "" || len(again.Placements) != 3 {
		t.Fatalf("commanded is %+v, want all places", again)
	}
	s.sizes(2, obeys(first)) // late
	s.has(2)
	if command := s.commanded(); command == nil || command.Yield != "" || len(command.Placements) != 3 {
		t.Errorf("to a late answer it commands %+v, want all places", command)
	}
}

// A new term that hears an answer to the last one's command begins it again.
func TestShrinkingSurvivesANewTerm(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(1)
	s.loses("workers", s.place("workers"))
	s.step(0)
	old := s.commanded()
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, LastOrder: s.lastOrder, Workloads: []StoredWorkload{{Record: s.gang().Record, Order: s.gang().order}}}
	for _, n := range s.nodes {
		stored.Nodes = append(stored.Nodes, StoredNode{Node: n.Node, Version: n.version, Present: true})
	}
	s.State = New(2, stored)
	s.sizes(1, obeys(old))
	s.has(2)
	s.observe()
	command := s.commanded()
	if command == nil || command.Yield == "" || command.Yield == old.Yield {
		t.Fatalf("commanded is %+v, want to yield again", command)
	}
	s.sizes(1, obeys(command))
	s.has(1)
}

// After an eviction it begins again at the size that was submitted, grown or
// shrunk as it was.
func TestANewAttemptBeginsAsSubmitted(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 5)
	s.created(true)
	s.sizes(4)
	s.has(4)
	s.run()
	head := s.place("headgroup")
	s.removeNode(head)
	s.is(workload.Evicting, workload.ReasonNodeLost)
	s.released()
	s.step(0)
	s.is(workload.Admitted, "")
	s.has(2)
	if e := s.gang(); e.PodSets[1].Resized != 0 {
		t.Errorf("the pod set is %+v", e.PodSets[1])
	}
}

// Places that the autoscaler may come back to are kept until its maximum is lowered.
func TestAnAutoscaledGangKeepsItsMaximum(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	s.sizes(1, func(status *event.GangStatus) { status.Keeps["workers"] = 2 })
	s.loses("workers", s.place("workers"))
	s.step(time.Hour)
	s.has(2)
	s.is(workload.Running, "")
	s.Flush()
	s.sizes(1) // the maximum is 1 now
	command := s.commanded()
	if command == nil || command.Yield == "" {
		t.Fatalf("with a lower maximum it commands %+v, want to give up a place", command)
	}
	s.sizes(1, obeys(command))
	s.has(1)
}

// A gang that has grown is whole without its new pods: that they are not ready evicts nothing.
func TestAGrownGangIsWholeWithoutItsNewPods(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(100)}}, 5)
	s.created(true)
	s.sizes(4)
	s.has(4)
	s.step(time.Hour)
	if e := s.gang(); e.Phase != workload.Running || e.Attempt != 1 {
		t.Errorf("it is %s in attempt %d because of %+v", e.Phase, e.Attempt, e.Reason)
	}
	s.has(4)
}

// A worker group that a user adds to the object gets no places, and the reason says so.
func TestAnAddedGroupIsNotAdmitted(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 5)
	s.created(true)
	s.sizes(2, func(status *event.GangStatus) { status.Sizes["more"] = 1 })
	s.is(workload.Running, workload.ReasonGrowing)
	if reason := s.gang().Reason; !strings.Contains(reason.Message, `"more"`) {
		t.Errorf("the reason is %+v", reason)
	}
	s.sizes(2)
	if reason := s.gang().Reason; reason != nil {
		t.Errorf("when it is gone the reason is %+v", reason)
	}
}

// New pods keep apart from those that are there, where their rules say so.
func TestAGrowingGangKeepsApart(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.created(true)
	named := func(name string, cpus int64) {
		s.node(name, func(n *capacity.Node) {
			n.Labels, n.Allocatable = map[string]string{"host": name}, resource.List{"cpu": cpus, "pods": 10}
		})
	}
	for _, name := range []string{"n0", "n1", "n2"} {
		named(name, 8)
	}
	sets := slices.Clone(s.gang().PodSets)
	sets[1].Template.Apart = []workload.Apart{{TopologyKey: "host", PodSets: []string{"workers"}}}
	s.gang().PodSets = sets
	s.sizes(4)
	s.is(workload.Running, workload.ReasonGrowing) // there is one node without a worker
	named("n3", 4)
	s.step(0)
	s.has(4)
	nodes := map[string]bool{}
	for _, p := range s.gang().Placements {
		if p.PodSet == "workers" {
			nodes[p.Node] = true
		}
	}
	if len(nodes) != 4 {
		t.Errorf("the four workers are on %v", nodes)
	}
}

// What is wrapped beside RayClusters and made larger has no places for that, and
// says so; a pod that waits for one that leaves is none too many.
func TestAWrappedObjectThatOutgrowsItsPlaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 4)
	s.gang().Kind = workload.KindAppWrapper
	s.created(true)
	waiting := func(name string) {
		s.pods[name] = event.GangPod{Name: name, PodSet: "workers", Phase: "Pending", Requests: resource.List{"cpu": 4, "pods": 1}}
	}
	leaving := ""
	for name, pod := range s.pods {
		if pod.PodSet == "workers" {
			leaving = name
		}
	}
	pod := s.pods[leaving]
	pod.Deleting = true
	s.pods[leaving] = pod
	waiting("replacement")
	s.observe()
	s.is(workload.Running, "")
	if s.gang().Reason != nil {
		t.Errorf("with a replacement its reason is %+v", s.gang().Reason)
	}
	pod.Deleting = false
	s.pods[leaving] = pod
	s.observe()
	s.is(workload.Running, workload.ReasonGrowing)
	if message := s.gang().Reason.Message; !strings.Contains(message, `1 more of "workers"`) {
		t.Errorf("the reason is %q", message)
	}
	s.has(2)
	s.step(time.Hour)
	s.is(workload.Running, workload.ReasonGrowing)
	delete(s.pods, "replacement")
	s.observe()
	if s.gang().Reason != nil {
		t.Errorf("when it is as submitted again its reason is %+v", s.gang().Reason)
	}
	waiting("of a cluster") // whose sizes are known: it stands in line
	s.observe()
	s.sizes(3)
	s.node("n5", nil)
	s.step(0)
	s.has(3)
}
