package admission_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
