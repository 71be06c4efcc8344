package state

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	testCluster = "c"
	testGrace   = time.Minute
)

func newTestState() *State {
	return New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{
		{Name: "loose", Namespaces: []string{"loose"}, Strategy: quota.BestEffortFIFO},
		{Name: "strict", Namespaces: []string{"strict"}, Strategy: quota.StrictFIFO},
	}})
}

// input is anything that a state takes in.
type input func(b *State, now time.Time)

// drawInput draws a valid, late, repeated or senseless input; seq orders
// observations.
func drawInput(t *rapid.T, seq uint64) input {
	id := func() workload.ID {
		return event.WorkloadID("test", fmt.Sprint(rapid.IntRange(0, 7).Draw(t, "workload")))
	}
	nodeName := func() string { return fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node")) }
	version := event.Version{Session: 1, Seq: seq}
	if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
		version.Seq = seq / 2
	}
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0, 1:
		e := &event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: id(), Queue: rapid.SampledFrom([]string{"loose", "strict", "nowhere"}).Draw(t, "queue"),
			Kind: "RayCluster", Digest: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "digest"),
			Name:     fmt.Sprintf("name-%d", rapid.IntRange(0, 5).Draw(t, "name")),
			Priority: rapid.Int32Range(0, 1).Draw(t, "priority"),
			PodSets:  drawPodSets(t),
		}}
		return func(s *State, now time.Time) { s.Submit(e, nil, now) }
	case 2:
		e := &event.WorkloadCancel{Workload: id()}
		return func(s *State, now time.Time) { s.Cancel(e, now) }
	case 3, 4:
		e := &event.NodeObserved{Version: version, Node: capacity.Node{
			Cluster: testCluster, Name: nodeName(), Ready: rapid.IntRange(0, 5).Draw(t, "ready") > 0,
			Allocatable: resource.List{"cpu": rapid.Int64Range(0, 6).Draw(t, "cpu"), "pods": 10},
			Unmanaged:   resource.List{"cpu": drawAmount(t, "unmanaged", 2)},
		}}
		return func(s *State, now time.Time) { s.Node(e, now) }
	case 5:
		e := &event.NodeRemoved{Version: version, Cluster: testCluster, Node: nodeName()}
		return func(s *State, now time.Time) { s.NodeRemoved(e, now) }
	case 6:
		e := &event.GangObserved{Version: version, Cluster: testCluster, Workload: id()}
		for i := range rapid.IntRange(0, 3).Draw(t, "pods") {
			e.Pods = append(e.Pods, event.GangPod{
				Name: fmt.Sprint(i), Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"), PodSet: "workers", Node: nodeName(),
				Phase: "Running", Ready: rapid.Bool().Draw(t, "ready"), Requests: resource.List{"cpu": drawAmount(t, "requests", 1), "pods": 1},
			})
		}
		return func(s *State, now time.Time) { s.Gang(e, now, now) }
	case 7:
		e := &event.GangStatus{
			Workload: id(), Cluster: testCluster, Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"),
			Created: rapid.Bool().Draw(t, "created"), Gone: rapid.Bool().Draw(t, "gone"),
			Refused: rapid.IntRange(0, 9).Draw(t, "refused") == 0,
			Outcome: rapid.SampledFrom([]string{"", "", event.OutcomeSucceeded, event.OutcomeFailed}).Draw(t, "outcome"),
		}
		if saved := rapid.Int64Range(0, 5000).Draw(t, "saved"); saved > 0 {
			e.LastCheckpoint = time.Unix(1_000_000+saved, 0)
		}
		e.Released = (e.Gone || e.Outcome != "") && rapid.Bool().Draw(t, "released")
		if rapid.Bool().Draw(t, "sized") {
			size := rapid.IntRange(0, 5).Draw(t, "size")
			e.Sizes, e.Keeps = map[string]int{"workers": size}, map[string]int{"workers": size + rapid.IntRange(0, 1).Draw(t, "kept")}
		}
		obeys := rapid.Bool().Draw(t, "obeys")
		return func(s *State, now time.Time) {
			answer := *e
			if live := s.live.Get(e.Workload); obeys && live != nil && live.attemptState != nil && live.scaleDown != nil {
				answer.Yielded = live.scaleDown.id
			}
			s.Status(&answer, now, now)
		}
	default:
		e := &event.CapacitySynced{Version: version, Cluster: testCluster, Nodes: []string{"n0", "n1"}, Gangs: []workload.ID{id()}}
		return func(s *State, now time.Time) { s.Synced(e, now); s.Tick(now, testGrace) }
	}
}

// drawAmount draws a small amount, and now and then one as the interfaces accept it, of
// which no two can be added.
func drawAmount(t *rapid.T, label string, most int64) int64 {
	if rapid.IntRange(0, 15).Draw(t, "absurd") == 0 {
		return rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, 1 << 62, 1 << 49}).Draw(t, label)
	}
	return rapid.Int64Range(0, most).Draw(t, label)
}

func drawPodSets(t *rapid.T) []workload.PodSet {
	set := func(name, role string, count int) workload.PodSet {
		return workload.PodSet{Name: name, Role: role, Count: count, Template: workload.Template{
			Requests: resource.List{"cpu": drawAmount(t, "asked", 3), "pods": 1},
		}}
	}
	return []workload.PodSet{
		set("head", workload.RoleHead, 1), set("workers", workload.RoleWorker, rapid.IntRange(1, 4).Draw(t, "workers")),
	}
}

// Whatever comes, in whatever order: a gang has places for all its pods or for
// none, no reservation is made beyond what a node has left, the sums agree, each
// step of a life is a lawful one, and the same inputs give the same changes.
func TestPromisesHoldWhateverComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, twin := newTestState(), newTestState()
		now := time.Unix(1_000_000, 0)
		lives := map[workload.ID]workload.Phase{}
		for seq := range uint64(rapid.IntRange(1, 60).Draw(t, "inputs")) {
			var batch []func(*State, time.Time)
			for i := range uint64(rapid.IntRange(1, 4).Draw(t, "batch")) {
				batch = append(batch, drawInput(t, 4*seq+i+1))
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			before := reservedOn(s)
			for _, each := range []*State{s, twin} {
				for _, in := range batch {
					in(each, now)
				}
				each.Decide(now)
			}
			checkGangs(t, s)
			checkNodes(t, s, before)
			changes := s.Flush()
			checkLives(t, lives, changes.History)
			if diff := cmp.Diff(changes, twin.Flush()); diff != "" {
				t.Fatalf("the same inputs gave other changes:\n%s", diff)
			}
		}
	})
}

func reservedOn(s *State) map[admission.NodeKey]resource.List {
	reserved := map[admission.NodeKey]resource.List{}
	for key, n := range s.nodes {
		reserved[key] = n.reserved
	}
	return reserved
}

func checkGangs(t *rapid.T, s *State) {
	waits := 0
	for e := range s.live.All() {
		if e.Phase == workload.Queued {
			waits++
		}
		if e.Holding != (e.attemptState != nil) {
			t.Fatalf("workload %s is %s (holding %t), and that it has a course is %t", e.ID, e.Phase, e.Holding, e.attemptState != nil)
		}
		placed := 0
		for _, p := range e.Placements {
			placed += p.Pods
		}
		if e.Holding && placed != e.Pods() || !e.Holding && placed != 0 {
			t.Fatalf("workload %s is %s (holding %t) with %d of %d pods placed", e.ID, e.Phase, e.Holding, placed, e.Pods())
		}
		if e.Holding == (e.Phase == workload.Queued) {
			t.Fatalf("workload %s is %s and holding is %t", e.ID, e.Phase, e.Holding)
		}
		if e.Phase == workload.Queued && e.Reason == nil {
			t.Fatalf("workload %s waits without a reason", e.ID)
		}
	}
	if waiting, started := s.Counts(); waiting != waits || started != s.live.Len()-waits {
		t.Fatalf("%d of %d wait, but %d and %d started are counted", waits, s.live.Len(), waiting, started)
	}
}

func checkNodes(t *rapid.T, s *State, before map[admission.NodeKey]resource.List) {
	sums := map[admission.NodeKey]resource.List{}
	for e := range s.live.All() {
		for _, p := range e.Placements {
			key := admission.NodeKey{Cluster: e.Cluster, Name: p.Node}
			sums[key] = sums[key].Plus(e.requests(p.PodSet).Times(int64(p.Pods)))
		}
	}
	for key, n := range s.nodes {
		if !n.reserved.Equal(sums[key]) {
			t.Fatalf("node %s: %s is reserved, the gangs there have %s", key.Name, n.reserved, sums[key])
		}
		left := n.Allocatable.Minus(n.used())
		for name, amount := range n.used() {
			if amount < 0 {
				t.Fatalf("node %s: %d of %s are used beside the gangs there", key.Name, amount, name)
			}
		}
		for name, amount := range n.reserved {
			if amount > before[key][name] && amount > left[name] {
				t.Fatalf("node %s: reserved %s grew to %d, but %d is left", key.Name, name, amount, left[name])
			}
		}
	}
}

func checkLives(t *rapid.T, lives map[workload.ID]workload.Phase, steps []HistoryRow) {
	for _, step := range steps {
		last, known := lives[step.Workload]
		if known && last != step.Phase && !last.MayBecome(step.Phase) && !last.Final() {
			t.Fatalf("workload %s went from %s to %s", step.Workload, last, step.Phase)
		}
		lives[step.Workload] = step.Phase
	}
}

// What a state writes is enough to go on: a leader that begins from it decides
// the same.
func TestANewTermGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	s := newTestState()
	now := time.Unix(1_000_000, 0)
	s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: 1}, Node: capacity.Node{
		Cluster: testCluster, Name: "n", Ready: true, Allocatable: resource.List{"cpu": 2, "pods": 10},
	}}, now)
	for i := range 3 {
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: workload.ID(fmt.Sprint(i)), Queue: "loose", Kind: "RayCluster", Name: fmt.Sprint(i),
			PodSets: []workload.PodSet{{Name: "workers", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 2, "pods": 1}}}},
		}}, nil, now)
	}
	s.Decide(now)
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["loose"]}, LastOrder: s.lastOrder}
	for _, e := range s.inOrder() {
		stored.Workloads = append(stored.Workloads, StoredWorkload{Record: e.Record, Order: e.order})
	}
	n := s.nodes[admission.NodeKey{Cluster: testCluster, Name: "n"}]
	stored.Nodes = []StoredNode{{Node: n.Node, Version: n.version, Present: n.present}}

	next := New(2, stored)
	next.Decide(now)
	if changes := next.Flush(); len(changes.Reserved) != 0 {
		t.Errorf("the new term admitted %+v on a full node", changes.Reserved)
	}
	next.Status(&event.GangStatus{Workload: "0", Cluster: testCluster, Attempt: 1, Created: true, Gone: true, Released: true}, now, now)
	next.Decide(now)
	changes := next.Flush()
	if len(changes.Freed) != 1 || len(changes.Reserved) != 1 || changes.Reserved[0].Workload != "1" {
		t.Errorf("after the end of the first: freed %v, reserved %+v; want the second in its place", changes.Freed, changes.Reserved)
	}
}
