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

// TestAClusterFillsNoMemory: however many nodes and workloads one cluster makes up,
// the state keeps a bounded number of them; other clusters are heard; and once the cluster takes
// its lies back, what is true is taken in.
func TestAClusterFillsNoMemory(t *testing.T) {
	t.Parallel()
	const most = 20
	s, now := newTestState(), time.Unix(1_000_000, 0)
	s.observed.maxNodes, s.observed.maxPods = most, most
	seq := uint64(0)
	version := func() event.Version { seq++; return event.Version{Session: 1, Seq: seq} }
	node := func(cluster string, i int) {
		s.Node(&event.NodeObserved{Version: version(), Node: capacity.Node{
			Cluster: cluster, Name: fmt.Sprint("n", i), Ready: true, Allocatable: resource.List{"cpu": 1 << 49, "pods": 10},
		}}, now)
	}
	gang := func(cluster string, i, pods int) {
		o := &event.GangObserved{Version: version(), Cluster: cluster, Workload: workload.ID(fmt.Sprint("w", i))}
		for p := range pods {
			o.Pods = append(o.Pods, event.GangPod{Name: fmt.Sprint("p", p), Node: "n0", Phase: "Running", Requests: resource.List{"cpu": 1 << 62, "pods": 1}})
		}
		s.Gang(o, now, now)
	}
	has := func(when string, nodesA, nodesB, gangs, pods, refused int) {
		t.Helper()
		counts, seen := map[string]int{}, map[string]int{}
		for key := range s.nodes {
			counts[key.Cluster]++
		}
		for key, g := range s.gangs {
			seen[key.cluster] += len(g.seen)
		}
		if counts["a"] != nodesA || counts["b"] != nodesB || len(s.gangs) != gangs || seen["b"] != pods || s.RefusedObservations() != refused {
			t.Errorf("%s: nodes %v, %d gangs with pods %v, %d refused; want nodes %d and %d, %d gangs, %d pods, %d refused",
				when, counts, len(s.gangs), seen, s.RefusedObservations(), nodesA, nodesB, gangs, pods, refused)
		}
		if s.observed.nodes["b"] != counts["b"] || s.observed.pods["b"] != seen["b"] {
			t.Errorf("%s: %d nodes and %d pods are counted, %v and %v are there", when, s.observed.nodes["b"], s.observed.pods["b"], counts, seen)
		}
	}

	node("a", 0)
	for i := range 1000 {
		node("b", i)
		gang("b", i, 2)
	}
	has("made up", 1, most, most/2, most, 1000-most+1000-most/2)
	refused := s.RefusedObservations()
	node("a", 1)
	gang("a", 0, 2)
	has("another cluster", 2, most, most/2+1, most, refused)
	if got := s.nodes[admission.NodeKey{Cluster: "b", Name: "n0"}].used()["cpu"]; got <= 0 {
		t.Errorf("absurd pods use %d of a node", got)
	}
	node("b", 0) // what is known is heard, and fewer pods than before
	gang("b", 0, 1)
	has("reported again", 2, most, most/2+1, most-1, refused)

	// The watcher of the new key lists what there is.
	s.Synced(&event.CapacitySynced{Version: version(), Cluster: "b", Nodes: []string{"n0"}, Gangs: []workload.ID{"w0"}}, now)
	s.Flush()
	if len(s.observed.on) != 2 { // one of each cluster
		t.Errorf("pods on %d nodes are noted, want 2", len(s.observed.on))
	}
	has("taken back", 2, 1, 2, 1, refused)
	node("b", 5000)
	gang("b", 5000, 3)
	has("true", 2, 2, 3, 4, refused)
}

// TestANodeAfterItsPods: pods that were seen before their node are charged to it, for
// as long as they are there.
func TestANodeAfterItsPods(t *testing.T) {
	t.Parallel()
	s, now := newTestState(), time.Unix(1_000_000, 0)
	seq := uint64(0)
	version := func() event.Version { seq++; return event.Version{Session: 1, Seq: seq} }
	gang := func(id workload.ID, nodes ...string) {
		o := &event.GangObserved{Version: version(), Cluster: "b", Workload: id}
		for _, n := range nodes {
			o.Pods = append(o.Pods, event.GangPod{Name: "p", Node: n, Phase: "Running", Requests: resource.List{"cpu": 1}})
		}
		s.Gang(o, now, now)
	}
	gang("v", "n", "n", "other")
	gang("w", "n")
	gang("x", "n")
	gang("x")
	key := admission.NodeKey{Cluster: "b", Name: "n"}
	s.Node(&event.NodeObserved{Version: version(), Node: capacity.Node{Cluster: "b", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 9}}}, now)
	if n := s.nodes[key]; len(n.unreserved) != 2 || n.unreservedRequests()["cpu"] != 3 {
		t.Errorf("charged are %v, want 2 CPU of v and 1 of w", n.unreserved)
	}
	gang("v")
	gang("w")
	if n := s.nodes[key]; len(n.unreserved) != 0 || len(s.observed.on) != 0 || len(s.gangs) != 0 {
		t.Errorf("when all are gone: charged %v, noted %v, %d gangs", n.unreserved, s.observed.on, len(s.gangs))
	}
}
