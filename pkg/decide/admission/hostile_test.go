package admission_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// hostileNames are what no friend calls anything, as far as the interfaces accept it: of
// clusters come nodes, resources and labels of any text.
var hostileNames = []string{"n", "\x1b[2J", "nul\x00", "../..", "", "line\nn", strings.Repeat("x", 512), "*", ">"}

// drawAmount draws what a manifest may ask for, or a cluster may tell: mostly
// little, else where sums and products overflow.
func drawAmount(t *rapid.T, label string) int64 {
	return rapid.OneOf(
		rapid.Int64Range(0, 8), rapid.Int64Range(0, 8), rapid.Just(int64(0)),
		rapid.SampledFrom([]int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2, math.MaxInt64/2 + 1, math.MaxInt64/3 + 1, 1 << 62, 1 << 53, 1 << 49, 1 << 32, 1 << 31}),
		rapid.Int64Range(0, math.MaxInt64),
	).Draw(t, label)
}

func drawHostileNode(t *rapid.T) capacity.Node {
	name := rapid.SampledFrom(hostileNames[:2]).Draw(t, "node")
	n := capacity.Node{
		Cluster: "c", Name: name, Ready: rapid.IntRange(0, 5).Draw(t, "ready") > 0,
		Labels:      map[string]string{"kubernetes.io/hostname": name, rapid.SampledFrom(hostileNames).Draw(t, "label"): rapid.SampledFrom(hostileNames).Draw(t, "value")},
		Allocatable: resource.List{"pods": rapid.Int64Range(0, 1<<49).Draw(t, "pods")},
		Unmanaged:   resource.List{},
	}
	for _, name := range []resource.Name{"cpu", "nvidia.com/gpu", resource.Name(rapid.SampledFrom(hostileNames).Draw(t, "resource"))} {
		n.Allocatable[name] = min(drawAmount(t, "allocatable"), 1<<49)
		n.Unmanaged[name] = rapid.OneOf(rapid.Just(int64(0)), rapid.Just(int64(math.MaxInt64)), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "unmanaged")
	}
	return n
}

// drawHostileGang draws as many pod sets as a gang may well have, most of them small.
func drawHostileGang(t *rapid.T, i int) *workload.Workload {
	w := &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%02d", i)), Queue: "q", Priority: rapid.SampledFrom([]int32{0, 1, math.MaxInt32, math.MinInt32}).Draw(t, "priority"),
	}
	for s := range rapid.OneOf(rapid.IntRange(1, 2), rapid.IntRange(1, 2), rapid.IntRange(1, 40)).Draw(t, "sets") {
		asked := resource.List{"pods": 1}
		for _, name := range []resource.Name{"cpu", "nvidia.com/gpu", resource.Name(rapid.SampledFrom(hostileNames).Draw(t, "resource"))} {
			asked[name] = drawAmount(t, "asked")
		}
		w.PodSets = append(w.PodSets, workload.PodSet{
			Name: fmt.Sprint(s, rapid.SampledFrom(hostileNames).Draw(t, "set")), Role: workload.RoleWorker,
			Count: rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 4), rapid.SampledFrom([]int{10_000, 9_999})).Draw(t, "count"), Template: workload.Template{Requests: asked},
		})
	}
	return w
}

// TestNothingHostileOverCommits: with whatever amounts, names and numbers of sets, no
// gang is given what a node does not have, in numbers that do not overflow, and
// each waiting gang has a reason.
func TestNothingHostileOverCommits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := hostile{state: admission.NewState(nil), nodes: map[admission.NodeKey]capacity.Node{}, gangs: map[workload.ID]*workload.Workload{}, runs: map[workload.ID]admission.Admission{}}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "node") {
				n := drawHostileNode(t)
				h.nodes[admission.NodeKey{Cluster: n.Cluster, Name: n.Name}] = n
				h.state.SetNode(n)
			} else {
				w := drawHostileGang(t, i)
				h.gangs[w.ID] = w
				h.state.Enqueue(admission.Waiting{Workload: w, Order: int64(i)})
			}
			for _, a := range admission.Decide(h.state, start).Admissions {
				h.runs[a.Workload] = a
				h.checkPlaces(t, a)
			}
			for id := range h.gangs {
				if _, admitted := h.runs[id]; !admitted && h.state.Reason(id) == nil {
					t.Fatalf("%s waits without a reason", id)
				}
			}
		}
	})
}

// hostile is what the test knows of the world by itself.
type hostile struct {
	state *admission.State
	nodes map[admission.NodeKey]capacity.Node
	gangs map[workload.ID]*workload.Workload
	runs  map[workload.ID]admission.Admission
}

// checkPlaces holds what a gang was given against its nodes, in numbers of any size.
func (h hostile) checkPlaces(t *rapid.T, a admission.Admission) {
	t.Helper()
	placed := map[string]int{}
	for _, p := range a.Placements {
		placed[p.PodSet] += p.Pods
	}
	for _, set := range h.gangs[a.Workload].PodSets {
		if placed[set.Name] != set.Count {
			t.Fatalf("%s has %d of %d pods of %q placed", a.Workload, placed[set.Name], set.Count, set.Name)
		}
	}
	for _, p := range a.Placements {
		node := h.nodes[admission.NodeKey{Cluster: a.Cluster, Name: p.Node}]
		for name, asked := range h.asked(a.Workload, p.PodSet) {
			if used := h.used(a.Cluster, p.Node, name); asked > 0 && used.Cmp(big.NewInt(node.Allocatable[name])) > 0 {
				t.Fatalf("node %q is over-committed: %s of %d of %q", p.Node, used, node.Allocatable[name], name)
			}
		}
	}
}

func (h hostile) asked(id workload.ID, set string) resource.List {
	for i := range h.gangs[id].PodSets {
		if h.gangs[id].PodSets[i].Name == set {
			return h.gangs[id].PodSets[i].Template.Requests
		}
	}
	return nil
}

// used sums what runs on a node, of Muster and beside it.
func (h hostile) used(cluster, node string, name resource.Name) *big.Int {
	sum := big.NewInt(h.nodes[admission.NodeKey{Cluster: cluster, Name: node}].Unmanaged[name])
	for id, a := range h.runs {
		for _, p := range a.Placements {
			if a.Cluster == cluster && p.Node == node {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(h.asked(id, p.PodSet)[name]), big.NewInt(int64(p.Pods))))
			}
		}
	}
	return sum
}
