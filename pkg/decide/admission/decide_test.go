package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func TestAGangIsPlacedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	nodes := []capacity.Node{nodeOf("a", 8, 2), nodeOf("b", 8, 1)}
	plan := decide(stateOf(nodes, []workload.PodSet{setOf("workers", 3, 1, 1)}, []workload.PodSet{setOf("workers", 1, 1, 1)}))
	want := []admission.Admission{{Workload: "gang-0", Cluster: "c", Placements: []workload.Placement{
		{PodSet: "workers", Node: "a", Pods: 2}, {PodSet: "workers", Node: "b", Pods: 1},
	}}}
	if diff := cmp.Diff(want, plan.Admissions); diff != "" {
		t.Errorf("admissions (-want +got):\n%s", diff)
	}
	if len(plan.Waits) != 1 || plan.Waits[0].Workload != "gang-1" {
		t.Errorf("waits are %+v, want gang-1 alone", plan.Waits)
	}
}

func TestFreeInSumButNotOnOneNode(t *testing.T) {
	t.Parallel()
	nodes := []capacity.Node{nodeOf("a", 8, 1), nodeOf("b", 8, 1)}
	plan := decide(stateOf(nodes, []workload.PodSet{setOf("workers", 1, 1, 2)}))
	want := &workload.Shortage{
		PodSet: "workers", Pods: 1, Unplaced: 1, Resource: "nvidia.com/gpu", Asked: 2, Largest: 1, Sum: 2,
		Eligible: 2, Nodes: 2, Excluded: map[string]int{},
	}
	if diff := cmp.Diff(want, plan.Waits[0].Reason.Shortage); diff != "" {
		t.Errorf("shortage (-want +got):\n%s", diff)
	}
	if message := plan.Waits[0].Reason.Message; !strings.Contains(message, "but not on one node") {
		t.Errorf("the reason does not say so: %q", message)
	}
}

func TestSmallPodsKeepOffGPUNodes(t *testing.T) {
	t.Parallel()
	nodes := []capacity.Node{nodeOf("a-gpu", 8, 8), nodeOf("b-cpu", 8, 0)}
	plan := decide(stateOf(nodes, []workload.PodSet{setOf("head", 1, 4, 0)}))
	if got := plan.Admissions[0].Placements[0].Node; got != "b-cpu" {
		t.Errorf("a pod without GPU is placed on %s", got)
	}
}

// A head that takes the wrong one of two nodes must not make the gang not fit.
func TestAMixedGangIsSearchedNotOnlyTried(t *testing.T) {
	t.Parallel()
	tight := capacity.Node{Cluster: "c", Name: "a", Ready: true, Allocatable: resource.List{"cpu": 4, "memory": 4, "pods": 9}}
	wide := capacity.Node{Cluster: "c", Name: "b", Ready: true, Allocatable: resource.List{"cpu": 5, "memory": 3, "pods": 9}}
	set := func(name string, cpu, memory int64) workload.PodSet {
		return workload.PodSet{Name: name, Count: 1, Template: workload.Template{
			Requests: resource.List{"cpu": cpu, "memory": memory, "pods": 1},
		}}
	}
	plan := decide(stateOf([]capacity.Node{tight, wide},
		[]workload.PodSet{set("one", 4, 3), set("two", 3, 4)}))
	if len(plan.Admissions) != 1 {
		t.Errorf("waits although it fits: %+v", plan.Waits)
	}
}

func TestNewcomersAreWeighedWhileTheOthersKeepTheirReasons(t *testing.T) {
	t.Parallel()
	s := stateOf([]capacity.Node{nodeOf("a", 8, 1)}, []workload.PodSet{setOf("workers", 2, 1, 1)})
	decide(s)
	if s.Pending(start) {
		t.Error("after a decision something is pending")
	}
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	plan := decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "gang-1" || len(plan.Waits) != 0 {
		t.Errorf("plan is %+v, want the newcomer admitted and nothing else said", plan)
	}
}

func strictTree(t testing.TB) *quota.Tree {
	return treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue", Strategy: quota.StrictFIFO}}})
}

func TestNoGangPassesTheHeadOfAStrictQueue(t *testing.T) {
	t.Parallel()
	s := admission.NewState(strictTree(t))
	s.SetNode(nodeOf("a", 8, 2))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 8)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	plan := decide(s)
	if len(plan.Admissions) != 0 || len(plan.Waits) != 2 || plan.Waits[1].Reason.Kind != workload.ReasonBehindHead {
		t.Errorf("plan is %+v, want both waiting, the second behind the head", plan)
	}
	s.Dequeue("gang-0")
	if plan := decide(s); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "gang-1" {
		t.Errorf("without the head the plan is %+v, want the second admitted", plan)
	}
}

func TestPriorityComesBeforeTheHeadOfAStrictQueue(t *testing.T) {
	t.Parallel()
	s := admission.NewState(strictTree(t))
	s.SetNode(nodeOf("a", 8, 2))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 8)})
	decide(s)
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{
		ID: "high", Queue: "queue", Priority: 10, PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)},
	}})
	if plan := decide(s); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "high" {
		t.Errorf("plan is %+v, want the one of higher priority admitted", plan)
	}
}

// drawSets draws a small gang of up to three pod sets.
func drawSets(t *rapid.T) []workload.PodSet {
	var sets []workload.PodSet
	for i := range rapid.IntRange(1, 3).Draw(t, "sets") {
		sets = append(sets, setOf(fmt.Sprintf("set-%d", i),
			rapid.IntRange(1, 3).Draw(t, "count"), rapid.Int64Range(0, 4).Draw(t, "cpus"), rapid.Int64Range(0, 3).Draw(t, "gpus")))
	}
	return sets
}

func drawNodes(t *rapid.T) []capacity.Node {
	var nodes []capacity.Node
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		nodes = append(nodes, nodeOf(fmt.Sprintf("node-%d", i),
			rapid.Int64Range(0, 8).Draw(t, "cpus"), rapid.Int64Range(0, 4).Draw(t, "gpus")))
	}
	return nodes
}

// The oracle tries every node for every pod.
func TestFitAgreesWithBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, sets := drawNodes(t), drawSets(t)
		plan := decide(stateOf(nodes, sets))
		fits := bruteForce(nodes, pods(sets))
		switch {
		case fits && len(plan.Admissions) != 1:
			t.Errorf("fits, but waits: %+v", plan.Waits)
		case !fits && len(plan.Waits) != 1:
			t.Errorf("does not fit, but is admitted: %+v", plan.Admissions)
		case !fits && plan.Waits[0].Reason.Kind != reasonOnEmpty(nodes, sets):
			t.Errorf("the reason of a small gang is %s, want %s", plan.Waits[0].Reason.Kind, reasonOnEmpty(nodes, sets))
		}
		for _, a := range plan.Admissions {
			checkPlacements(t, nodes, sets, a.Placements)
		}
	})
}

// reasonOnEmpty is why a gang does not fit on empty nodes: NeverFits when some pod set alone
// does not, or when all pods request more than there is on the nodes that take some of them.
func reasonOnEmpty(nodes []capacity.Node, sets []workload.PodSet) workload.ReasonKind {
	asked, offered := resource.List{}, resource.List{}
	for _, set := range sets {
		if !bruteForce(nodes, pods([]workload.PodSet{set})) {
			return workload.ReasonNeverFits
		}
		for range set.Count {
			asked = asked.Plus(set.Template.Requests)
		}
	}
	for name := range asked {
		for _, n := range nodes {
			takes := slices.ContainsFunc(sets, func(set workload.PodSet) bool {
				return set.Template.Requests[name] > 0 && bruteForce([]capacity.Node{n}, []resource.List{set.Template.Requests})
			})
			if takes {
				offered[name] += n.Allocatable[name]
			}
		}
		if asked[name] > offered[name] {
			return workload.ReasonNeverFits
		}
	}
	return workload.ReasonFit
}

func pods(sets []workload.PodSet) []resource.List {
	var all []resource.List
	for _, set := range sets {
		for range set.Count {
			all = append(all, set.Template.Requests)
		}
	}
	return all
}

func bruteForce(nodes []capacity.Node, pods []resource.List) bool {
	if len(pods) == 0 {
		return true
	}
	for i := range nodes {
		free := nodes[i].Allocatable
		if !pods[0].FitsIn(free) {
			continue
		}
		nodes[i].Allocatable = free.Minus(pods[0])
		fits := bruteForce(nodes, pods[1:])
		nodes[i].Allocatable = free
		if fits {
			return true
		}
	}
	return false
}

func checkPlacements(t *rapid.T, nodes []capacity.Node, sets []workload.PodSet, placements []workload.Placement) {
	placed, used := map[string]int{}, map[string]resource.List{}
	for _, p := range placements {
		placed[p.PodSet] += p.Pods
		for _, set := range sets {
			if set.Name == p.PodSet {
				used[p.Node] = used[p.Node].Plus(set.Template.Requests.Times(int64(p.Pods)))
			}
		}
	}
	for _, set := range sets {
		if placed[set.Name] != set.Count {
			t.Errorf("%d of %d pods of %s are placed", placed[set.Name], set.Count, set.Name)
		}
	}
	for _, n := range nodes {
		if !used[n.Name].FitsIn(n.Allocatable) {
			t.Errorf("node %s is over-committed: %s of %s", n.Name, used[n.Name], n.Allocatable)
		}
	}
}

// The same state gives the same plan, in whatever order it was built.
func TestDecisionsDoNotDependOnTheOrderOfBuilding(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		gangs := rapid.SliceOfN(rapid.Custom(drawSets), 1, 5).Draw(t, "gangs")
		want := decide(stateOf(nodes, gangs...))
		shuffled := admission.NewState(nil)
		for _, i := range rapid.Permutation(indices(len(gangs))).Draw(t, "order of gangs") {
			enqueue(shuffled, i, "queue", gangs[i])
		}
		for _, i := range rapid.Permutation(indices(len(nodes))).Draw(t, "order of nodes") {
			shuffled.SetNode(nodes[i])
		}
		if diff := cmp.Diff(want, decide(shuffled)); diff != "" {
			t.Errorf("plans differ (-in order +shuffled):\n%s", diff)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
