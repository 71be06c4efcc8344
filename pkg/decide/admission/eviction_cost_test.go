package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// holding starts a gang of one GPU a pod, some time ago.
func holding(s *admission.State, id, queue, node string, gpus int, ago time.Duration, p admission.Progress) {
	s.Start(admission.Started{
		Workload: &workload.Workload{ID: workload.ID(id), Name: id, Queue: queue, PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)}},
		Cluster:  "c", Placements: []workload.Placement{{PodSet: "workers", Node: node, Pods: gpus}}, Admitted: start.Add(-ago),
		Flavors:  []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "default"}}},
		Progress: p,
	})
}

// TestAnEvictionHasWhatItCostsAndWhatElseWasWeighed: the reason of the victim has its own
// loss since its last checkpoint and what its start took; that of both sides has, for
// operators, the loss of all victims beside that of the best other set.
func TestAnEvictionHasWhatItCostsAndWhatElseWasWeighed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, queue string // of the victim and the other candidate
		preemptor   string
	}{{"own queue", "a", "workload urgent"}, {"another queue", "b", "a workload of another queue"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			policy := `"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"`
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 16, policy), gpuQueue("b", 0, policy))))
			for _, name := range []string{"one", "two"} {
				s.SetNode(nodeOf(name, 64, 8))
			}
			holding(s, "long", c.queue, "one", 8, time.Hour, admission.Progress{})
			holding(s, "short", c.queue, "two", 8, 10*time.Minute, admission.Progress{Checkpoint: start.Add(-time.Minute), Startup: 30 * time.Second})
			s.Enqueue(admission.Waiting{Order: 2, Workload: &workload.Workload{ID: "urgent", Name: "urgent", Queue: "a", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 8, 0, 1)}}})
			plan := admission.Decide(s, start)
			if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != "short" || len(plan.Waits) != 1 {
				t.Fatalf("plan %+v, want short to be evicted", plan)
			}
			victim, preemptor := plan.Evictions[0].Reason, plan.Waits[0].Reason
			cost := victim.Preemption.Cost
			if cost == nil || *cost != (workload.EvictionCost{Lost: 480, Since: start.Add(-time.Minute), Checkpoint: true, Restart: 240, Unit: workload.UnitAccelerators}) {
				t.Errorf("the victim loses %+v", cost)
			}
			for _, part := range []string{"accommodate " + c.preemptor, "loses 480 accelerator-seconds since its last checkpoint", "about 240 in its next start", "exact"} {
				if !strings.Contains(victim.Message, part) {
					t.Errorf("%q has no %q", victim.Message, part)
				}
			}
			for who, reason := range map[string]workload.Reason{"victim": victim, "preemptor": preemptor} {
				t.Run(who, func(t *testing.T) {
					choice := reason.Preemption.Choice
					switch {
					case choice == nil:
						t.Errorf("the reason of the %s has no choice", who)
					case !slices.Equal(choice.Victims, []workload.ID{"short"}) || choice.Cost.Lost != 480 || choice.Cost.Restart != 240,
						!slices.Equal(choice.Other, []workload.ID{"long"}) || choice.OtherCost.Lost != 8*3600:
						t.Errorf("the reason of the %s has the choice %+v", who, choice)
					case reason.Preemption.Cut:
						t.Errorf("the reason of the %s says that the search was cut", who)
					}
					if tenant := reason.ForTenant(); tenant.Preemption.Choice != nil || reason.Preemption.Choice == nil {
						t.Errorf("a tenant sees the choice in the reason of the %s: %+v", who, tenant.Preemption)
					}
				})
			}
		})
	}
}

// TestEveryEvictionHasWhatItCosts: also one that is for no other workload.
func TestEveryEvictionHasWhatItCosts(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]func(*quota.Config){
		"a queue": func(c *quota.Config) { c.ClusterQueues[0].StopPolicy = quota.HoldAndDrain },
		"a cluster": func(c *quota.Config) {
			c.ClusterCordons = []quota.ClusterCordon{{Name: "c", Since: start, Drain: true, By: "ann"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := gpuPolicy(t, false, gpuQueue("a", 16, ""))
			drain(&c)
			s := admission.NewState(treeOf(t, c))
			s.SetNode(nodeOf("one", 64, 8))
			holding(s, "g", "a", "one", 8, time.Hour, admission.Progress{Checkpoint: start.Add(-time.Minute), Startup: 30 * time.Second})
			plan := admission.Decide(s, start)
			if len(plan.Evictions) != 1 {
				t.Fatalf("the plan is %+v", plan)
			}
			why := plan.Evictions[0].Reason
			want := &workload.PreemptionCause{Cost: &workload.EvictionCost{Lost: 480, Since: start.Add(-time.Minute), Checkpoint: true, Restart: 240, Unit: workload.UnitAccelerators}}
			if diff := cmp.Diff(want, why.Preemption); diff != "" || why.Kind != workload.ReasonDrained {
				t.Errorf("it is evicted for %+v (-want +got):\n%s", why, diff)
			}
			if !strings.Contains(why.Message, "; it loses 480 accelerator-seconds since its last checkpoint at ") || !strings.HasSuffix(why.Message, ", about 240 in its next start") {
				t.Errorf("the reason says %q", why.Message)
			}
		})
	}
}

// TestTheChoiceHasWhatDecided: the costs are those since the checkpoints, of which the choice
// counts nothing, so it has what it counts, too.
func TestTheChoiceHasWhatDecided(t *testing.T) {
	t.Parallel()
	type gang struct {
		id       string
		priority int32
		gpus     int64
		ago      time.Duration
		saved    bool // a second ago
	}
	for name, c := range map[string]struct {
		gangs [2]gang
		want  workload.PreemptionChoice
	}{
		"work": {
			[2]gang{{"a", 0, 1, 10 * time.Minute, false}, {"b", 0, 1, time.Hour, true}},
			workload.PreemptionChoice{
				Cost: workload.EvictionCost{Lost: 600, Unit: "accelerators"}, OtherCost: workload.EvictionCost{Lost: 1, Unit: "accelerators"},
				By: workload.ChosenByAccelerators, Counted: 600, OtherCounted: 3600,
			},
		},
		"work of pods": {
			[2]gang{{"a", 0, 0, 10 * time.Minute, false}, {"b", 0, 0, time.Hour, true}},
			workload.PreemptionChoice{
				Cost: workload.EvictionCost{Lost: 600, Unit: "pods"}, OtherCost: workload.EvictionCost{Lost: 1, Unit: "pods"},
				By: workload.ChosenByPods, Counted: 600, OtherCounted: 3600,
			},
		},
		"work and starts, not returns": {
			[2]gang{{"a", 0, 2, 10 * time.Minute, false}, {"b", 0, 2, time.Hour, true}},
			workload.PreemptionChoice{
				Cost:      workload.EvictionCost{Lost: 1200, Restart: 600, Return: 2400, Unit: "accelerators"},
				OtherCost: workload.EvictionCost{Lost: 2, Restart: 600, Return: 2400, Unit: "accelerators"},
				By:        workload.ChosenByAccelerators, Counted: 1800, OtherCounted: 7800,
			},
		},
		"priority": {
			[2]gang{{"a", 0, 1, time.Hour, false}, {"b", 1, 1, time.Minute, false}},
			workload.PreemptionChoice{
				Cost: workload.EvictionCost{Lost: 3600, Unit: "accelerators"}, OtherCost: workload.EvictionCost{Lost: 60, Unit: "accelerators"},
				By: workload.ChosenByPriority,
			},
		},
		"nothing": {
			[2]gang{{"a", 0, 1, time.Hour, false}, {"b", 0, 1, time.Hour, false}},
			workload.PreemptionChoice{
				Cost: workload.EvictionCost{Lost: 3600, Unit: "accelerators"}, OtherCost: workload.EvictionCost{Lost: 3600, Unit: "accelerators"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`))))
			for i, g := range c.gangs {
				s.SetNode(nodeOf(g.id, 4, g.gpus))
				started := admission.Started{
					Workload: &workload.Workload{ID: workload.ID(g.id), Queue: "a", Priority: g.priority, PodSets: []workload.PodSet{setOf("workers", 1, 3, g.gpus)}},
					Order:    int64(-i), Cluster: "c", Placements: []workload.Placement{{PodSet: "workers", Node: g.id, Pods: 1}}, Admitted: start.Add(-g.ago),
				}
				if g.saved {
					started.Progress.Checkpoint = start.Add(-time.Second)
				}
				s.Start(started)
				for range 8 {
					if c.want.Cost.Return > 0 {
						s.LearnStart(workload.ID(g.id), 5*time.Minute)
						s.LearnReturn(workload.ID(g.id), 20*time.Minute)
					}
				}
			}
			s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "new", Queue: "a", Priority: 5, PodSets: []workload.PodSet{setOf("workers", 1, 3, c.gangs[0].gpus)}}})
			plan := admission.Decide(s, start)
			if len(plan.Evictions) != 1 || plan.Evictions[0].Reason.Preemption.Choice == nil {
				t.Fatalf("the plan is %+v", plan)
			}
			c.want.Victims, c.want.VictimCount, c.want.Other, c.want.OtherCount = []workload.ID{"a"}, 1, []workload.ID{"b"}, 1
			if diff := cmp.Diff(&c.want, plan.Evictions[0].Reason.Preemption.Choice); diff != "" {
				t.Errorf("the choice (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASearchThatIsCutReportsIt: more victims than the exact search looks for are found by
// order, and the reason does not say that they are the cheapest.
func TestASearchThatIsCutReportsIt(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 64, `"withinClusterQueue": "LowerPriority"`))))
	const gangs = 40
	var nodes []capacity.Node
	for i := range gangs {
		nodes = append(nodes, nodeOf(fmt.Sprintf("node-%02d", i), 8, 1))
		s.SetNode(nodes[i])
		holding(s, fmt.Sprintf("gang-%02d", i), "a", nodes[i].Name, 1, time.Duration(i+1)*time.Minute, admission.Progress{})
	}
	s.Enqueue(admission.Waiting{Order: gangs, Workload: &workload.Workload{ID: "large", Queue: "a", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 36, 0, 1)}}})
	plan := admission.Decide(s, start)
	if len(plan.Evictions) != 36 {
		t.Fatalf("%d evictions, want 36", len(plan.Evictions))
	}
	for _, e := range plan.Evictions {
		if !e.Reason.Preemption.Cut || !strings.Contains(e.Reason.Message, "is not exact") {
			t.Fatalf("reason %+v, want that the search was cut", e.Reason)
		}
	}
}
