package admission_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// rangeOf returns a pod set that may start with fewer pods.
func rangeOf(least, count int, cpus, gpus int64) workload.PodSet {
	set := setOf("workers", count, cpus, gpus)
	set.MinCount = least
	return set
}

// The cases are those of Kueue's documentation of partial admission: the largest count
// from the minimum up that fits is admitted, and less than the minimum never.
func TestAGangStartsWithFewerPods(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gpus  int64
		set   workload.PodSet
		pods  int
		waits string
	}{
		"all":                   {8, rangeOf(2, 8, 0, 1), 8, ""},
		"as many as fit":        {5, rangeOf(2, 8, 0, 1), 5, ""},
		"the fewest":            {2, rangeOf(2, 8, 0, 1), 2, ""},
		"less than the fewest":  {1, rangeOf(2, 8, 0, 1), 0, "That is its smallest size, with 2 of 8 pods of \"workers\""},
		"no range":              {5, setOf("workers", 8, 0, 1), 0, "8 more needed"},
		"replicas of two hosts": {5, func() workload.PodSet { s := rangeOf(2, 8, 0, 1); s.Step = 2; return s }(), 4, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for of, s := range map[string]*admission.State{
				"nodes": stateOf([]capacity.Node{nodeOf("n", 8, c.gpus)}, []workload.PodSet{c.set}),
				"quota": func() *admission.State {
					s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("queue", int(c.gpus), ""))))
					s.SetNode(nodeOf("n", 8, 100))
					enqueue(s, 0, "queue", []workload.PodSet{c.set})
					return s
				}(),
			} {
				t.Run(of, func(t *testing.T) {
					plan := decide(s)
					if c.pods == 0 {
						why := s.Reason("gang-0")
						if len(plan.Admissions) != 0 || why == nil || c.set.MinCount > 0 && !strings.Contains(why.Message, c.waits) {
							t.Errorf("by %s the plan is %+v, the reason %+v", of, plan, why)
						}
						return
					}
					if len(plan.Admissions) != 1 {
						t.Fatalf("by %s the plan is %+v, the reason %+v", of, plan, s.Reason("gang-0"))
					}
					a := plan.Admissions[0]
					placed := 0
					for _, p := range a.Placements {
						placed += p.Pods
					}
					if placed != c.pods || (a.PodSets == nil) != (c.pods == c.set.Count) || a.PodSets != nil && (a.PodSets[0].Count != c.pods || a.PodSets[0].Resized != c.pods-c.set.Count) {
						t.Errorf("by %s it starts with %d pods: %+v", of, placed, a)
					}
				})
			}
		})
	}
}

// A gang that waits with its smallest size starts as soon as there is room for that, and
// one that has started smaller is charged for what it has.
func TestASmallerGangStartsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("queue", 8, ""))))
	s.SetNode(nodeOf("n", 8, 8))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 6, 0, 1)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 0, 1)})
	decide(s)
	enqueue(s, 2, "queue", []workload.PodSet{rangeOf(2, 8, 0, 1)})
	if plan := decide(s); len(plan.Admissions) != 0 {
		t.Fatalf("with one free the plan is %+v", plan)
	}
	s.Leave("gang-1")
	s.Release("gang-1")
	plan := decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].PodSets[0].Count != 2 {
		t.Fatalf("with two free the plan is %+v", plan)
	}
	enqueue(s, 3, "queue", []workload.PodSet{setOf("workers", 1, 0, 1)})
	decide(s)
	if why := s.Reason("gang-3"); why == nil || why.Quota == nil || why.Quota.Used != 8 {
		t.Errorf("the next one waits because of %+v", why)
	}
}

// As in Kueue, a gang has others evicted for all of its pods before it starts with fewer,
// and for as many as it can where all are too many.
func TestASmallerGangPreempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		least, count int
		evicted, got int
	}{
		"all by evictions":    {2, 8, 1, 8},
		"fewer by evictions":  {2, 12, 1, 8},
		"fewer without a set": {9, 12, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("queue", 8, `"withinClusterQueue": "LowerPriority"`))))
			s.SetNode(nodeOf("n", 8, 8))
			enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 6, 0, 1)})
			decide(s)
			s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{
				ID: "gang-1", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{rangeOf(c.least, c.count, 0, 1)},
			}})
			later := start.Add(2 * 60e9)
			plan := admission.Decide(s, later)
			if len(plan.Evictions) != c.evicted || len(plan.Admissions) != 0 {
				t.Fatalf("the plan is %+v, the reason %+v", plan, s.Reason("gang-1"))
			}
			if c.evicted == 0 {
				return
			}
			s.Leave("gang-0")
			s.Release("gang-0")
			plan = admission.Decide(s, later)
			if len(plan.Admissions) != 1 || plan.Admissions[0].Placements[0].Pods != c.got {
				t.Errorf("when the victim is gone the plan is %+v", plan)
			}
		})
	}
}

// A gang of which all pods would fit after an eviction does not wait for the end of the
// victim's protection, which may last for hours, where it may start smaller at once.
func TestASmallerGangDoesNotWaitForProtection(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("queue", 8, `"withinClusterQueue": "LowerPriority", "minRunSeconds": 3600`))))
	s.SetNode(nodeOf("n", 8, 8))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 6, 0, 1)})
	decide(s)
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{
		ID: "gang-1", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{rangeOf(2, 8, 0, 1)},
	}})
	plan := admission.Decide(s, start.Add(2*60e9))
	if len(plan.Evictions) != 0 || len(plan.Admissions) != 1 || plan.Admissions[0].Placements[0].Pods != 2 {
		t.Errorf("beside a gang that is protected for an hour the plan is %+v, the reason %+v", plan, s.Reason("gang-1"))
	}
}

// The size at which a gang starts is the largest at which a gang of exactly that size
// would start in its place. The gangs of the test ask the same for each pod, so that a
// gang of fewer pods starts wherever one of more does.
func TestTheLargestSizeStarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawPolicyOf(t, []string{quota.BestEffortFIFO})
		var nodes []capacity.Node
		for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			n := drawNode(t)
			n.Name = string(rune('a' + i))
			nodes = append(nodes, n)
		}
		running := drawWholeGang(t, 0)
		gang := drawWholeGang(t, 1)
		gang.PodSets[1] = rangeOf(rapid.IntRange(1, 6).Draw(t, "least"), rapid.IntRange(1, 9).Draw(t, "count"), 1, rapid.Int64Range(0, 2).Draw(t, "gpus"))
		starts := func(workers workload.PodSet) int {
			tree, err := quota.New(c)
			if err != nil {
				t.Fatal(err)
			}
			s := admission.NewState(tree)
			for _, n := range nodes {
				s.SetNode(n)
			}
			first, w := *running, *gang
			s.Enqueue(admission.Waiting{Workload: &first})
			admission.Decide(s, start)
			w.PodSets = []workload.PodSet{gang.PodSets[0], workers}
			s.Enqueue(admission.Waiting{Workload: &w, Order: 1})
			later := start.Add(2 * 60e9)
			plan := admission.Decide(s, later)
			for _, e := range plan.Evictions {
				s.Leave(e.Workload)
				s.Release(e.Workload)
			}
			if len(plan.Evictions) > 0 {
				plan = admission.Decide(s, later)
			}
			pods := 0
			for _, a := range plan.Admissions {
				if a.Workload == w.ID {
					for _, p := range a.Placements {
						pods += p.Pods
					}
				}
			}
			return pods
		}
		want := 0
		for count := gang.PodSets[1].Count; count >= min(gang.PodSets[1].MinCount, gang.PodSets[1].Count) && want == 0; count-- {
			want = starts(setOf("workers", count, 1, gang.PodSets[1].Template.Requests["nvidia.com/gpu"]))
		}
		if got := starts(gang.PodSets[1]); got != want {
			t.Fatalf("it starts with %d pods, and a gang of %d would", got, want)
		}
	})
}
