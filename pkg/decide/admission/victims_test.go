package admission_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// siege is a waiting gang and those that run in its way.
type siege struct {
	t       *rapid.T
	config  quota.Config
	nodes   []capacity.Node
	running []admission.Started
	waiting admission.Waiting
}

func (s *siege) tree() *quota.Tree {
	tree, err := quota.New(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	return tree
}

func drawSiege(t *rapid.T) *siege {
	one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	g := &siege{t: t}
	text := fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": %s}, "clusterQueues": [`, one("fair", "true", "false"))
	for i, name := range []string{"a", "b", "c"} {
		borrow := ""
		reclaim := one("reclaim", "Never", "LowerPriority", "Any", "Any")
		if reclaim != "Never" && rapid.Bool().Draw(t, "borrow") {
			borrow = `, "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 1}`
		}
		if i > 0 {
			text += ","
		}
		text += gpuQueue(name, rapid.IntRange(1, 6).Draw(t, "nominal"), fmt.Sprintf(`"withinClusterQueue": %q, "reclaimWithinCohort": %q%s`,
			one("within", "Never", "LowerPriority", "LowerPriority", "LowerOrNewerEqualPriority"), reclaim, borrow))
	}
	g.config = parsed(t, text+"]}")
	free := map[string]int64{}
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := nodeOf(fmt.Sprintf("node-%d", i), 64, rapid.Int64Range(1, 4).Draw(t, "gpus"))
		g.nodes = append(g.nodes, n)
		free[n.Name] = n.Allocatable["nvidia.com/gpu"]
	}
	for i := range rapid.IntRange(3, 7).Draw(t, "running") {
		each := rapid.Int64Range(1, 2).Draw(t, "each")
		w := &workload.Workload{ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: one("queue", "a", "a", "b", "c"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority")}
		pods := 0
		s := admission.Started{
			Workload: w, Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Duration(rapid.IntRange(2, 20).Draw(t, "ran")) * time.Second),
			Flavors:  []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}},
			Progress: admission.Progress{Startup: time.Duration(rapid.IntRange(0, 5).Draw(t, "startup")) * time.Second},
		}
		if rapid.Bool().Draw(t, "saves") {
			s.Progress.Interval = time.Duration(rapid.IntRange(1, 10).Draw(t, "interval")) * time.Second
		}
		if rapid.Bool().Draw(t, "saved") { // some before the admission, some to come
			s.Progress.Checkpoint = start.Add(-time.Duration(rapid.SampledFrom([]int{-5, 1, 2, 4, 8, 16, 25}).Draw(t, "checkpoint")) * time.Second)
		}
		for _, n := range g.nodes {
			here := min(int64(2-pods), free[n.Name]/each)
			if here > 0 {
				pods += int(here)
				free[n.Name] -= here * each
				s.Placements = append(s.Placements, workload.Placement{PodSet: "workers", Node: n.Name, Pods: int(here)})
			}
		}
		if w.PodSets = []workload.PodSet{setOf("workers", pods, 0, each)}; pods > 0 {
			g.running = append(g.running, s)
		}
	}
	g.waiting = admission.Waiting{Order: rapid.SampledFrom([]int64{-1, 3, 100}).Draw(t, "order"), Workload: &workload.Workload{
		ID: "waiting", Queue: "a", Priority: rapid.Int32Range(1, 3).Draw(t, "priority"),
		PodSets: []workload.PodSet{setOf("workers", rapid.IntRange(1, 3).Draw(t, "pods"), 0, rapid.Int64Range(1, 3).Draw(t, "each"))},
	}}
	return g
}

// play decides with the given policy and running gangs.
func (s *siege) play(tree *quota.Tree, running []admission.Started) admission.Plan {
	state := admission.NewState(tree)
	for _, n := range s.nodes {
		state.SetNode(n)
	}
	for _, r := range running {
		state.Start(r)
	}
	waiting := s.waiting
	state.Enqueue(waiting)
	return admission.Decide(state, start)
}

// The victims of a gang are the cheapest of all sets that are enough, by trying them all:
// those of the queues with the largest shares; then the least loss of the own queue; then
// the least loss of the highest priority, of the next one and so on; then the fewest gangs.
// Where no set is enough, no gang is evicted; where one is, gangs are.
func TestVictimsAreTheCheapest(t *testing.T) {
	t.Parallel()
	sizes := map[int]int{}
	tested := func() bool { return sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0 }
	for rounds := 0; rounds < 40 && !tested(); rounds++ { // few draws need two victims
		rapid.Check(t, func(t *rapid.T) { checkVictims(t, sizes) })
	}
	t.Logf("decisions by number of victims: %v", sizes)
	if !tested() {
		t.Errorf("decisions by number of victims are %v, want some with none, one and two", sizes)
	}
}

// checkVictims plays a siege, and counts its decision by the number of victims.
func checkVictims(t *rapid.T, sizes map[int]int) {
	g := drawSiege(t)
	plan := g.play(g.tree(), g.running)
	if len(plan.Admissions) > 0 {
		return
	}
	want, found := g.cheapest()
	sizes[len(plan.Evictions)]++
	if !found {
		if len(plan.Evictions) > 0 {
			t.Fatalf("%+v are evicted, and no set of gangs would do", plan.Evictions)
		}
		return
	}
	r := g.rules()
	var got []target
	for _, v := range plan.Evictions {
		i := slices.IndexFunc(r.all, func(t target) bool { return t.Workload.ID == v.Workload })
		got = append(got, r.all[i])
	}
	if r.billOf(slices.Clone(got)) != want && !r.sparesOne(got, want) {
		t.Fatalf("evicted are %+v at a cost (rank of share, lost by priority, gangs) of %v, and %v would do", plan.Evictions, r.billOf(got), want)
	}
}
