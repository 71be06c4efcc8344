package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// claim is a gang of one pod in a cohort with quota of CPU and GPUs, which the documentation of
// preemption (concepts/preemption) is about: who has borrowed of what lacks may be evicted.
type claim struct {
	id       workload.ID
	queue    string
	priority int32
	asks     [2]int64 // CPU, GPUs
}

// claims are the quota of a cohort, who runs, and who waits in the queue "a".
type claims struct {
	nominal map[string][2]int64
	running []claim
	waiting claim
}

func drawClaims(t *rapid.T) claims {
	amounts := func(label string, least, most int64) [2]int64 {
		return [2]int64{rapid.Int64Range(least, most).Draw(t, "CPU of "+label), rapid.Int64Range(least, most).Draw(t, "GPUs of "+label)}
	}
	all := claims{nominal: map[string][2]int64{}}
	for _, name := range []string{"a", "b", "c"} {
		all.nominal[name] = amounts(name, 1, 5)
	}
	free := all.free()
	for i := range rapid.IntRange(2, 6).Draw(t, "running") {
		c := claim{workload.ID(fmt.Sprint("gang-", i)), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue"), rapid.Int32Range(0, 2).Draw(t, "priority"), amounts("gang", 0, 4)}
		if c.asks[0]+c.asks[1] > 0 && c.asks[0] <= free[0] && c.asks[1] <= free[1] {
			all.running = append(all.running, c)
			free[0], free[1] = free[0]-c.asks[0], free[1]-c.asks[1]
		}
	}
	all.waiting = claim{"waiting", "a", 1, amounts("the one that waits", 0, 5)}
	if all.waiting.asks == [2]int64{} {
		all.waiting.asks[1] = 1
	}
	return all
}

// used is what a queue uses.
func (all claims) used(queue string) (used [2]int64) {
	for _, c := range all.running {
		if c.queue == queue {
			used[0], used[1] = used[0]+c.asks[0], used[1]+c.asks[1]
		}
	}
	return used
}

func (all claims) free() (free [2]int64) {
	for name, nominal := range all.nominal {
		used := all.used(name)
		free[0], free[1] = free[0]+nominal[0]-used[0], free[1]+nominal[1]-used[1]
	}
	return free
}

// lacking lists of what there is too little for the one that waits.
func (all claims) lacking() (of []int) {
	free := all.free()
	for i, asked := range all.waiting.asks {
		if asked > free[i] {
			of = append(of, i)
		}
	}
	return of
}

// without is all but one gang.
func (all claims) without(id workload.ID) claims {
	all.running = slices.DeleteFunc(slices.Clone(all.running), func(c claim) bool { return c.id == id })
	return all
}

// gives reports whether a gang may be evicted now for what lacked: one of another queue that uses
// more of it than its nominal quota, or one of the own queue and of lower priority.
func (all claims) gives(c claim, lacked []int) bool {
	if c.queue == "a" {
		return c.priority < all.waiting.priority
	}
	used := all.used(c.queue)
	return slices.ContainsFunc(lacked, func(i int) bool { return used[i] > all.nominal[c.queue][i] })
}

// inSomeOrder reports whether all of these may be evicted, one after the other.
func (all claims) inSomeOrder(victims []claim, lacked []int) bool {
	if len(victims) == 0 {
		return true
	}
	for i, c := range victims {
		if all.gives(c, lacked) && all.without(c.id).inSomeOrder(slices.Delete(slices.Clone(victims), i, i+1), lacked) {
			return true
		}
	}
	return false
}

// one returns a gang whose eviction alone is permitted and enough: then the one that waits starts
// and, unless it evicts of its own queue, within the nominal quota of its queue.
func (all claims) one(lacked []int) (claim, bool) {
	asks := all.waiting.asks
	if slices.ContainsFunc(lacked, func(i int) bool { return asks[i] > all.nominal["a"][i] }) {
		return claim{}, false // what is more than nominal evicts none
	}
	for _, c := range all.running {
		after := all.without(c.id)
		used, within := after.used("a"), true
		for i, asked := range asks {
			within = within && used[i]+asked <= all.nominal["a"][i]
		}
		if all.gives(c, lacked) && len(after.lacking()) == 0 && (within || c.queue == "a") {
			return c, true
		}
	}
	return claim{}, false
}

// decide makes the decision for the one that waits, on a node with room for all.
func (all claims) decide(t *rapid.T) admission.Plan {
	var queues []string
	for _, name := range slices.Sorted(maps.Keys(all.nominal)) {
		queues = append(queues, fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared", "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
			"resourceGroups": [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": %d}, {"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]}`,
			name, all.nominal[name][0], all.nominal[name][1]))
	}
	tree, err := quota.New(parsed(t, fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "clusterQueues": [%s]}`, strings.Join(queues, ","))))
	if err != nil {
		t.Fatal(err)
	}
	s := admission.NewState(tree)
	s.SetNode(nodeOf("node", 1000, 1000))
	of := func(c claim) *workload.Workload {
		return &workload.Workload{ID: c.id, Queue: c.queue, Priority: c.priority, PodSets: []workload.PodSet{setOf("workers", 1, c.asks[0], c.asks[1])}}
	}
	for i, c := range all.running {
		flavors := map[resource.Name]string{}
		for j, name := range []resource.Name{"cpu", "nvidia.com/gpu"} {
			if c.asks[j] > 0 {
				flavors[name] = "default"
			}
		}
		s.Start(admission.Started{
			Workload: of(c), Order: int64(i), Cluster: "c", Admitted: start.Add(-time.Duration(10+i) * time.Second),
			Flavors: []workload.PodSetFlavors{{PodSet: "workers", Flavors: flavors}}, Placements: []workload.Placement{{PodSet: "workers", Node: "node", Pods: 1}},
		})
	}
	s.Enqueue(admission.Waiting{Workload: of(all.waiting), Order: 100, Since: start})
	return admission.Decide(s, start)
}

// TestOnlyWhoIsBeyondNominalOfWhatLacksGivesBack: of several resources, those that lack decide who has
// to give back. No gang is evicted whose queue is within its nominal quota of all of them, and where
// one eviction is permitted and enough, the gang does not wait.
func TestOnlyWhoIsBeyondNominalOfWhatLacksGivesBack(t *testing.T) {
	t.Parallel()
	evicted, spared := 0, 0
	drawn(t, func() bool { return evicted > 0 && spared > 0 }, func(t *rapid.T) {
		all := drawClaims(t)
		lacked, plan := all.lacking(), all.decide(t)
		var victims []claim
		for _, v := range plan.Evictions {
			i := slices.IndexFunc(all.running, func(c claim) bool { return c.id == v.Workload })
			victims = append(victims, all.running[i])
		}
		switch {
		case len(lacked) == 0 && (len(plan.Admissions) != 1 || len(victims) > 0):
			t.Fatalf("nothing lacks, and the plan is %+v", plan)
		case !all.inSomeOrder(victims, lacked):
			t.Fatalf("%+v are evicted for what lacks (%v) of %+v", victims, lacked, all)
		}
		if one, enough := all.one(lacked); enough && len(lacked) > 0 && len(victims) == 0 {
			t.Fatalf("it waits, and the eviction of %+v would do, of %+v", one, all)
		}
		evicted += len(victims)
		for _, c := range all.running { // who uses more than nominal, but not of what lacks
			used := all.used(c.queue)
			over := used[0] > all.nominal[c.queue][0] || used[1] > all.nominal[c.queue][1]
			if over && c.queue != "a" && len(victims) > 0 && !all.gives(c, lacked) {
				spared++
			}
		}
	})
}
