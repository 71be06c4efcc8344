package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// rayCluster returns a RayCluster of that many workers with a GPU each, of which the least may
// stay alone.
func rayCluster(id workload.ID, priority int32, least, count int) *workload.Workload {
	set := setOf("workers", count, 0, 1)
	set.MinCount = least
	return &workload.Workload{ID: id, Queue: "queue", Kind: workload.KindRayCluster, Priority: priority, PodSets: []workload.PodSet{set}}
}

// elastic returns a state of GPUs, a queue whose gangs may evict lower priorities, and gangs
// that have run for an hour; places has the pods of each on each node.
func elastic(t *testing.T, nodes map[string]int64, places map[string]map[string]int, gangs ...*workload.Workload) *admission.State {
	t.Helper()
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority},
	}}}))
	for _, name := range []string{"a", "b"} {
		if gpus, there := nodes[name]; there {
			s.SetNode(nodeOf(name, 64, gpus))
		}
	}
	for i, w := range gangs {
		g := admission.Started{Workload: w, Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Hour)}
		for _, node := range []string{"a", "b"} {
			if pods := places[string(w.ID)][node]; pods > 0 {
				g.Placements = append(g.Placements, workload.Placement{PodSet: "workers", Node: node, Pods: pods})
			}
		}
		s.Start(g)
		s.SetProgress(w.ID, admission.Progress{Startup: time.Minute, Running: true})
	}
	return s
}

// outcomeOf is what a plan does to running gangs.
func outcomeOf(plan admission.Plan) (done []string) {
	for _, g := range plan.Shrinks {
		text := "shrinks " + string(g.Workload)
		for _, p := range g.Leave {
			text += fmt.Sprintf(" %s:%d", p.Node, p.Pods)
		}
		done = append(done, text)
	}
	for _, e := range plan.Evictions {
		done = append(done, "evicts "+string(e.Workload))
	}
	return done
}

// TestAGangIsShrunkBeforeItIsEvicted: a gang gives up what it has above its minimum, no more
// than is needed; a gang is evicted whole only where that is not enough.
func TestAGangIsShrunkBeforeItIsEvicted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes  map[string]int64
		places map[string]map[string]int
		gangs  []*workload.Workload
		asks   workload.PodSet
		want   []string
	}{
		"as few as needed": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, []*workload.Workload{rayCluster("r", 0, 2, 8)},
			setOf("workers", 3, 0, 1), []string{"shrinks r a:3"},
		},
		"down to its minimum": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, []*workload.Workload{rayCluster("r", 0, 2, 8)},
			setOf("workers", 6, 0, 1), []string{"shrinks r a:6"},
		},
		"not below it": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, []*workload.Workload{rayCluster("r", 0, 2, 8)},
			setOf("workers", 7, 0, 1), []string{"evicts r"},
		},
		"without a minimum": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, []*workload.Workload{rayCluster("r", 0, 0, 8)},
			setOf("workers", 3, 0, 1), []string{"evicts r"},
		},
		"no higher priority": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, []*workload.Workload{rayCluster("r", 5, 2, 8)},
			setOf("workers", 3, 0, 1), nil,
		},
		"rather than another that goes whole": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 6}, "s": {"a": 2}},
			[]*workload.Workload{rayCluster("r", 1, 2, 6), rayCluster("s", 0, 0, 2)},
			setOf("workers", 2, 0, 1), []string{"shrinks r a:2"},
		},
		"beside one that goes whole": {
			map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 4}, "s": {"a": 4}},
			[]*workload.Workload{rayCluster("r", 0, 2, 4), rayCluster("s", 0, 0, 4)},
			setOf("workers", 5, 0, 1), []string{"shrinks r a:1", "evicts s"},
		},
		"where it has most": {
			map[string]int64{"a": 4, "b": 4}, map[string]map[string]int{"r": {"a": 2, "b": 4}, "s": {"a": 2}},
			[]*workload.Workload{rayCluster("r", 0, 2, 6), rayCluster("s", 9, 0, 2)},
			setOf("workers", 1, 0, 4), []string{"shrinks r b:4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := elastic(t, c.nodes, c.places, c.gangs...)
			s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{c.asks}}})
			plan := decide(s)
			if diff := cmp.Diff(c.want, outcomeOf(plan)); diff != "" {
				t.Fatalf("the plan (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShrinkingIsWeighedByWhatIsGivenUp: the gang that loses least by giving up what is needed
// does, whatever else it could give up; and the reason says so.
func TestShrinkingIsWeighedByWhatIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		x, y    time.Duration // for how long they have run
		surplus [2]int
		asks    int
		want    []string
	}{
		"one pod":           {time.Hour, 2 * time.Hour, [2]int{10, 2}, 1, []string{"shrinks x a:1"}},
		"as many as needed": {time.Hour, 2 * time.Hour, [2]int{10, 2}, 4, []string{"shrinks x a:4"}},
		"some of each":      {time.Hour, 2 * time.Hour, [2]int{2, 10}, 3, []string{"shrinks x a:2", "shrinks y b:1"}},
		"of the other":      {2 * time.Hour, time.Hour, [2]int{10, 2}, 1, []string{"shrinks y b:1"}},
		"some of the other": {2 * time.Hour, time.Hour, [2]int{10, 2}, 3, []string{"shrinks y b:2", "shrinks x a:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, y := rayCluster("x", 0, 1, 1+c.surplus[0]), rayCluster("y", 0, 1, 1+c.surplus[1])
			s := elastic(t, map[string]int64{"a": int64(1 + c.surplus[0]), "b": int64(1 + c.surplus[1])}, nil)
			for i, g := range []*workload.Workload{x, y} {
				s.Start(admission.Started{
					Workload: g, Order: int64(i), Cluster: "c", Admitted: start.Add(-[]time.Duration{c.x, c.y}[i]),
					Placements: []workload.Placement{{PodSet: "workers", Node: []string{"a", "b"}[i], Pods: g.Pods()}},
				})
				s.SetProgress(g.ID, admission.Progress{Running: true})
			}
			s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", c.asks, 0, 1)}}})
			plan := decide(s)
			got := outcomeOf(plan)
			slices.Sort(got)
			slices.Sort(c.want)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("the plan (-want +got):\n%s", diff)
			}
			for _, g := range plan.Shrinks {
				if !strings.HasSuffix(g.Reason.Message, "the search for the cheapest evictions was exact") {
					t.Errorf("%s is shrunk because %q", g.Workload, g.Reason.Message)
				}
			}
		})
	}
}

// TestShrinkingIsTheCheapest tries all that random gangs can give up: no choice loses less, also
// where a bound ends the search before it has looked at all. Few searches end so.
func TestShrinkingIsTheCheapest(t *testing.T) {
	t.Parallel()
	draws, cut := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		draws++
		s := elastic(t, nil, nil)
		var surplus, minutes []int
		var priority []int32
		sum := 0
		for i := range rapid.IntRange(1, 4).Draw(r, "gangs") {
			surplus = append(surplus, rapid.IntRange(1, 4).Draw(r, "surplus"))
			minutes = append(minutes, rapid.IntRange(1, 9).Draw(r, "minutes"))
			priority = append(priority, int32(rapid.IntRange(0, 1).Draw(r, "priority")))
			sum += surplus[i]
			w := rayCluster(workload.ID(fmt.Sprintf("g%d", i)), priority[i], 1, 1+surplus[i])
			node := fmt.Sprintf("node-%d", i)
			s.SetNode(nodeOf(node, 64, int64(1+surplus[i])))
			s.Start(admission.Started{
				Workload: w, Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Duration(minutes[i]) * time.Minute),
				Placements: []workload.Placement{{PodSet: "workers", Node: node, Pods: 1 + surplus[i]}},
			})
			s.SetProgress(w.ID, admission.Progress{Running: true})
		}
		asks := rapid.IntRange(1, sum).Draw(r, "asks")
		s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", asks, 0, 1)}}})
		plan := decide(s)
		gives := make([]int, len(surplus))
		for _, g := range plan.Shrinks {
			if g.Reason.Preemption.Cut {
				cut++
			}
			gives[g.Workload[1]-'0'] = g.PodSets[0].Count
		}
		// What is lost of priority 1 and of 0, and how many gangs lose it.
		bill := func(gives []int) (b [3]int) {
			for i, n := range gives {
				if n > 0 {
					b[1-priority[i]] += n * minutes[i]
					b[2]++
				}
			}
			return b
		}
		var try func(gives []int, given int)
		least := bill(surplus)
		try = func(gives []int, given int) {
			if i := len(gives); i < len(surplus) {
				for n := range surplus[i] + 1 {
					try(append(slices.Clip(gives), n), given+n)
				}
			} else if b := bill(gives); given >= asks && slices.Compare(b[:], least[:]) < 0 {
				least = b
			}
		}
		try(nil, 0)
		if got := bill(gives); len(plan.Evictions) > 0 || got != least {
			r.Fatalf("of surplus %v, run for %v min with priority %v, %d are asked for, and they give %v: %v, want %v", surplus, minutes, priority, asks, gives, got, least)
		}
	})
	if cut > draws/10 {
		t.Errorf("of %d searches %d were cut, want a tenth at most", draws, cut)
	}
}

// TestAGangOfAHigherPriorityGivesUpLess: where a bound ends the search, too, the gang of the
// highest priority gives up no more than the others leave to it.
func TestAGangOfAHigherPriorityGivesUpLess(t *testing.T) {
	t.Parallel()
	s := elastic(t, nil, nil)
	for i, priority := range []int32{0, 0, 0, 1} {
		w := rayCluster(workload.ID(fmt.Sprintf("g%d", i)), priority, 1, 5)
		node := fmt.Sprintf("node-%d", i)
		s.SetNode(nodeOf(node, 64, 5))
		s.Start(admission.Started{Workload: w, Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Minute), Placements: []workload.Placement{{PodSet: "workers", Node: node, Pods: 5}}})
		s.SetProgress(w.ID, admission.Progress{Running: true})
	}
	s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 13, 0, 1)}}})
	gives := map[workload.ID]int{}
	for _, g := range decide(s).Shrinks {
		gives[g.Workload] = g.PodSets[0].Count
	}
	if gives["g0"]+gives["g1"]+gives["g2"] != 12 || gives["g3"] != 1 {
		t.Errorf("they give up %v, want 4 pods of each but 1 of g3", gives)
	}
}

// TestManyShrinkingGangsAreBounded: a thousand gangs each have pods to spare. How many of them
// each gives up is found within what the queue may spend, and where that was too little, the
// reasons say that the search was cut.
func TestManyShrinkingGangsAreBounded(t *testing.T) {
	t.Parallel()
	const gangs, pods, asks = 1000, 9, 7995
	s := elastic(t, nil, nil)
	for i := range gangs {
		node := fmt.Sprintf("node-%04d", i)
		s.SetNode(nodeOf(node, 64, pods))
		w := rayCluster(workload.ID(node), 0, 1, pods)
		s.Start(admission.Started{Workload: w, Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Hour), Placements: []workload.Placement{{PodSet: "workers", Node: node, Pods: pods}}})
		s.SetProgress(w.ID, admission.Progress{Running: true})
	}
	s.Enqueue(admission.Waiting{Order: gangs, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", asks, 0, 1)}}})
	plan, steps, _ := spent(s, func() admission.Plan { return admission.Decide(s, start) })
	if len(plan.Shrinks) != gangs || len(plan.Evictions) > 0 {
		t.Fatalf("%d are shrunk and %d evicted, want %d and none", len(plan.Shrinks), len(plan.Evictions), gangs)
	}
	if steps < 1_600_000 || steps > mostQueueSteps {
		t.Errorf("the decision took %d steps, want more than 1,600,000 for what it tried and at most %d", steps, mostQueueSteps)
	}
	if why := plan.Shrinks[0].Reason.Message; !strings.Contains(why, "was cut at its limit") {
		t.Errorf("a gang is shrunk because %q", why)
	}
}

// TestTheNominatedGangStartsWhenThePodsAreGone: not before, not when only some are, and
// nothing else gets the places; the gang that gave them up is not asked again.
func TestTheNominatedGangStartsWhenThePodsAreGone(t *testing.T) {
	t.Parallel()
	s := elastic(t, map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, rayCluster("r", 0, 2, 8))
	ask := func(id workload.ID, order int64, priority int32, pods int) {
		s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{ID: id, Queue: "queue", Priority: priority, PodSets: []workload.PodSet{setOf("workers", pods, 0, 1)}}})
	}
	ask("new", 1, 5, 4)
	plan := decide(s)
	if len(plan.Shrinks) != 1 || plan.Shrinks[0].Reason.Kind != workload.ReasonShrunk || plan.Shrinks[0].Reason.Preemption.Preemptor != "new" {
		t.Fatalf("the plan is %+v", plan)
	}
	if cost := plan.Shrinks[0].Reason.Preemption.Cost; cost.Lost != 4*3600 {
		t.Errorf("the reason says that %d accelerator-seconds are lost, want those of four for an hour", cost.Lost)
	}
	ask("later", 2, 4, 1)
	left := func(count int) {
		set := rayCluster("r", 0, 2, 8).PodSets[0]
		set.Count = count
		s.Shrink("r", []workload.PodSet{set}, []workload.Placement{{PodSet: "workers", Node: "a", Pods: count}})
	}
	if plan := decide(s); len(plan.Admissions) > 0 || len(plan.Shrinks)+len(plan.Evictions) > 0 {
		t.Errorf("before they are gone the plan is %+v", plan)
	}
	left(6)
	if plan := decide(s); len(plan.Admissions) > 0 {
		t.Errorf("with two of four gone the plan is %+v", plan)
	}
	left(4)
	plan = decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "new" {
		t.Errorf("with all gone the plan is %+v", plan)
	}
	if diff := cmp.Diff([]string{"shrinks r a:1"}, outcomeOf(plan)); diff != "" {
		t.Errorf("then the later one has its turn (-want +got):\n%s", diff)
	}
}

// TestAShrinkOutlivesAConfiguration: the nomination goes on with the part that is given up.
func TestAShrinkOutlivesAConfiguration(t *testing.T) {
	t.Parallel()
	s := elastic(t, map[string]int64{"a": 8}, map[string]map[string]int{"r": {"a": 8}}, rayCluster("r", 0, 2, 8))
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "new", Queue: "queue", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 4, 0, 1)}}})
	decide(s)
	s.Reconfigure(treeOf(t, s.Quota().Config()))
	if plan := decide(s); len(plan.Admissions)+len(plan.Shrinks)+len(plan.Evictions) > 0 {
		t.Fatalf("after the configuration the plan is %+v", plan)
	}
	set := rayCluster("r", 0, 2, 4).PodSets[0]
	s.Shrink("r", []workload.PodSet{set}, []workload.Placement{{PodSet: "workers", Node: "a", Pods: 4}})
	if plan := decide(s); len(plan.Admissions) != 1 {
		t.Errorf("with the pods gone the plan is %+v", plan)
	}
}
