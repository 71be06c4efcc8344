package admission_test

import (
	"cmp"
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
			Flavors: []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}},
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

// target is one that may be evicted under one of the policies.
type target struct {
	admission.Started
	policy  string
	offence int
	lost    int64
}

// targets are those that the policies, written down here once more, let the
// waiting gang have evicted, in the order in which quota is asked: the others
// first.
func (s *siege) targets(policy string, offences map[string]int) []target {
	p, mine := s.tree().Queue("a").Preemption, s.waiting.Workload
	fits := func(rule string, r admission.Started) bool {
		lower := r.Workload.Priority < mine.Priority
		newer := r.Workload.Priority == mine.Priority && r.Order > s.waiting.Order
		return rule == quota.Any || rule != "" && rule != quota.Never && lower || rule == quota.LowerOrNewerEqualPriority && newer
	}
	var others, own []target
	for _, r := range s.running {
		t := target{r, policy, offences[r.Workload.Queue], int64(r.Workload.Pods()) * int64(start.Sub(r.Admitted)/time.Second)}
		switch {
		case r.Workload.Queue == "a":
			if t.policy = "within"; fits(p.WithinClusterQueue, r) {
				own = append(own, t)
			}
		case policy == "borrow":
			if p.BorrowWithinCohort != nil && fits(quota.LowerPriority, r) && r.Workload.Priority <= 1 {
				others = append(others, t)
			}
		case policy != "within" && fits(p.ReclaimWithinCohort, r):
			others = append(others, t)
		}
	}
	for _, list := range [][]target{others, own} {
		slices.SortFunc(list, func(a, b target) int {
			return cmp.Or(cmp.Compare(a.offence, b.offence), cmp.Compare(a.Workload.Priority, b.Workload.Priority), b.Admitted.Compare(a.Admitted), cmp.Compare(b.Order, a.Order))
		})
	}
	return append(others, own...)
}

// allowed evicts one after the other and reports whether quota lets each be.
func (s *siege) allowed(set []target, borrow bool) bool {
	tree := s.tree()
	charge := func(w *workload.Workload) []quota.Charge {
		return quota.ChargesOf(w.PodSets, []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}})
	}
	for _, r := range s.running {
		tree.Queue(r.Workload.Queue).Allocate(charge(r.Workload))
	}
	mine, asked := tree.Queue("a"), charge(s.waiting.Workload)
	for _, t := range set {
		other, theirs := tree.Queue(t.Workload.Queue), charge(t.Workload)
		fair := mine.FairToEvict(asked, other, theirs, quota.LessThanOrEqualToFinalShare) || mine.FairToEvict(asked, other, theirs, quota.LessThanInitialShare)
		if t.policy != "within" && (!mine.MayReclaimFrom(other, asked) || t.policy == "fair" && !fair) {
			return false
		}
		other.Release(theirs)
	}
	return borrow || !slices.ContainsFunc(set, func(t target) bool {
		return t.policy != "within" && mine.BorrowsFrom(tree.Queue(t.Workload.Queue), asked)
	})
}

// bill is what evictions cost, the most important part first.
type bill [4]int64

func billOf(set []target) bill {
	b := bill{int64(len(set)), 0, -1, 0}
	for _, t := range set {
		b[1], b[2], b[3] = max(b[1], int64(t.offence)), max(b[2], int64(t.Workload.Priority)), b[3]+t.lost
	}
	return b
}

// cheapest tries all sets of all policies.
func (s *siege) cheapest(offences map[string]int) (best bill, found bool) {
	tree := s.tree()
	calm := s.config
	calm.ClusterQueues = slices.Clone(calm.ClusterQueues)
	for i := range calm.ClusterQueues {
		calm.ClusterQueues[i].Preemption = nil
	}
	try := func(all []target, borrow bool) {
		for mask := 1; mask < 1<<len(all); mask++ {
			var set []target
			gone := map[workload.ID]bool{}
			for i, t := range all {
				if mask>>i&1 == 1 {
					set = append(set, t)
					gone[t.Workload.ID] = true
				}
			}
			if cost := billOf(set); found && slices.Compare(cost[:], best[:]) >= 0 || !s.allowed(set, borrow) {
				continue
			}
			rest := slices.DeleteFunc(slices.Clone(s.running), func(r admission.Started) bool { return gone[r.Workload.ID] })
			peace, _ := quota.New(calm)
			if len(s.play(peace, rest).Admissions) == 1 {
				best, found = billOf(set), true
			}
		}
	}
	p := tree.Queue("a").Preemption
	if tree.Config().FairSharing.Enable {
		try(s.targets("fair", offences), true)
		return best, found
	}
	above := p.BorrowWithinCohort != nil
	nominal := tree.Queue("a").ResourceGroups[0].Flavors[0].Resources[0].Nominal
	set := s.waiting.Workload.PodSets[0]
	reclaim := s.targets("reclaim", offences)
	if above || set.Template.Requests["nvidia.com/gpu"]*int64(set.Count) <= nominal {
		try(s.targets("within", offences), true)
	} else { // Kueue: more than nominal evicts no gang of the own queue
		reclaim = slices.DeleteFunc(reclaim, func(t target) bool { return t.policy == "within" })
	}
	try(reclaim, false)
	if above {
		try(s.targets("borrow", offences), true)
	}
	return best, found
}

// offences ranks the queues by their shares if sharing is fair.
func (s *siege) offences() map[string]int {
	ranks, tree := map[string]int{}, s.tree()
	if !s.config.FairSharing.Enable {
		return ranks
	}
	for _, r := range s.running {
		tree.Queue(r.Workload.Queue).Allocate(quota.ChargesOf(r.Workload.PodSets, r.Flavors))
	}
	for _, q := range tree.Queues() {
		for _, other := range tree.Queues() {
			if other.Share() > q.Share() {
				ranks[q.Name]++
			}
		}
	}
	return ranks
}

// The victims of a gang are the cheapest of all sets that are enough, by trying them all:
// the fewest gangs, then those of the queues with the largest shares, then of the lowest
// priority, then with the least work lost. Where no set is enough, no gang is evicted;
// where one is, gangs are.
func TestVictimsAreTheCheapest(t *testing.T) {
	t.Parallel()
	sizes := map[int]int{}
	rapid.Check(t, func(t *rapid.T) {
		g := drawSiege(t)
		plan := g.play(g.tree(), g.running)
		if len(plan.Admissions) > 0 {
			return
		}
		offences := g.offences()
		want, found := g.cheapest(offences)
		sizes[len(plan.Evictions)]++
		if !found {
			if len(plan.Evictions) > 0 {
				t.Fatalf("%+v are evicted, and no set of gangs would do", plan.Evictions)
			}
			return
		}
		var got []target
		for _, v := range plan.Evictions {
			i := slices.IndexFunc(g.running, func(r admission.Started) bool { return r.Workload.ID == v.Workload })
			r := g.running[i]
			got = append(got, target{r, "", offences[r.Workload.Queue], int64(r.Workload.Pods()) * int64(start.Sub(r.Admitted)/time.Second)})
		}
		if billOf(got) != want {
			t.Fatalf("evicted are %+v at a cost (gangs, offence, priority, lost work) of %v, and %v would do", plan.Evictions, billOf(got), want)
		}
	})
	t.Logf("decisions by number of victims: %v", sizes)
	for size := range 3 {
		if sizes[size] == 0 {
			t.Errorf("no decision had %d victims: nothing was tested", size)
		}
	}
}
