package admission_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// drawPolicy draws queues a to d in a small tree of cohorts, with quota of GPUs
// in two flavors, of which the cluster may offer one, and policies of all kinds.
func drawPolicy(t *rapid.T) quota.Config { return drawPolicyOf(t, allStrategies) }

var allStrategies = []string{quota.BestEffortFIFO, quota.StrictFIFO, quota.Backfill}

// drawPolicyOf is drawPolicy with queues of the given strategies.
func drawPolicyOf(t *rapid.T, strategies []string) quota.Config {
	one := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	number := func(label string) int { return rapid.IntRange(0, 4).Draw(t, label) }
	groups := func() string {
		return fmt.Sprintf(`[{"coveredResources": ["nvidia.com/gpu"], "flavors": [
			{"name": "one", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]},
			{"name": "two", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`, number("one"), number("two"))
	}
	text := fmt.Sprintf(`{"resourceFlavors": [{"name": "one"}, {"name": "two", "nodeLabels": {"kind": "two"}}], "fairSharing": {"enable": %s},
		"cohorts": [{"name": "left", "parentName": "root"}, {"name": "right", "parentName": "root", "resourceGroups": %s}], "clusterQueues": [`,
		one("fair", "true", "false"), groups())
	for i, name := range []string{"a", "b", "c", "d"} {
		if i > 0 {
			text += ","
		}
		given := ""
		if rapid.IntRange(0, 3).Draw(t, "quota") > 0 {
			given = `, "resourceGroups": ` + groups()
		}
		strategy, backfill := one("strategy", strategies...), ""
		if strategy == quota.Backfill {
			backfill = fmt.Sprintf(`, "backfill": {"order": %q, "patienceSeconds": %d}`,
				one("order", quota.Submission, quota.ShortestBackfill, quota.ShortestFirst), rapid.IntRange(1, 10).Draw(t, "patience")*30)
		}
		borrow := ""
		reclaim := one("reclaim", "Never", "LowerPriority", "Any")
		if reclaim != "Never" && rapid.Bool().Draw(t, "borrow") {
			borrow = `, "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 1}`
		}
		text += fmt.Sprintf(`{"name": %q, "cohortName": %q, "quotaCheckStrategy": "IgnoreUndeclared", "queueingStrategy": %q%s%s,
			"flavorFungibility": {"whenCanBorrow": %q, "whenCanPreempt": %q}, "fairSharing": {"weight": %q},
			"preemption": {"withinClusterQueue": %q, "reclaimWithinCohort": %q, "minRunSeconds": %d%s}}`,
			name, one("cohort", "", "root", "left", "right"), strategy, backfill, given,
			one("whenCanBorrow", "MayStopSearch", "TryNextFlavor"), one("whenCanPreempt", "MayStopSearch", "TryNextFlavor"), one("weight", "1", "2", "0"),
			one("within", "Never", "LowerPriority", "LowerOrNewerEqualPriority"), reclaim, rapid.IntRange(0, 1).Draw(t, "protect")*60, borrow)
	}
	clusters := one("offered", "", "", `, "clusters": [{"name": "c", "flavors": ["one"]}]`, `, "clusters": [{"name": "c", "flavors": ["two"]}]`)
	return parsed(t, text+"]"+clusters+"}")
}

func parsed(t *rapid.T, text string) quota.Config {
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

// calm removes the pods of evicted gangs until nothing happens any more. It ends, because
// preemption is no loop. Each preemptor starts, so no eviction is useless.
func (m *model) calm() {
	for round := range 200 {
		m.now = m.now.Add(2 * time.Minute) // no gang is protected any more
		promised := maps.Clone(m.promised)
		ids := slices.Sorted(maps.Keys(m.going))
		for _, id := range ids {
			m.gone(id)
		}
		plan := m.decide()
		for id := range promised {
			if len(ids) > 0 && m.waiting[id] {
				m.t.Fatalf("the victims of %s are gone, and it still waits: %+v", id, m.state.Reason(id))
			}
		}
		if len(ids) == 0 && len(plan.Admissions)+len(plan.Evictions)+len(plan.Growths) == 0 {
			return
		}
		if round == 199 {
			m.t.Fatal("evictions do not come to an end")
		}
	}
}

func drawGang(t *rapid.T, i int) *workload.Workload {
	w := drawWholeGang(t, i)
	if workers := &w.PodSets[1]; workers.Count > 1 && rapid.Bool().Draw(t, "range") {
		workers.MinCount = rapid.IntRange(1, workers.Count-1).Draw(t, "at least")
	}
	return w
}

func drawWholeGang(t *rapid.T, i int) *workload.Workload {
	return &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%02d", i)), Queue: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "queue"),
		Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		PodSets: []workload.PodSet{
			setOf("head", 1, rapid.Int64Range(0, 2).Draw(t, "cpus"), 0),
			setOf("workers", rapid.IntRange(0, 3).Draw(t, "workers"), 1, rapid.Int64Range(0, 3).Draw(t, "gpus")),
		},
	}
}

func drawNode(t *rapid.T) capacity.Node {
	n := nodeOf(fmt.Sprintf("node-%d", rapid.IntRange(0, 3).Draw(t, "node")), rapid.Int64Range(1, 8).Draw(t, "cpus"), rapid.Int64Range(0, 6).Draw(t, "gpus"))
	n.Labels["kind"] = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "kind")
	return n
}

// step draws one event and lets the state decide.
func (m *model) step(i int) {
	t := m.t
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	ids := slices.Sorted(maps.Keys(m.gangs))
	var run []workload.ID
	for _, id := range ids {
		if _, runs := m.started[id]; runs && !m.going[id] {
			run = append(run, id)
		}
	}
	switch kind := rapid.IntRange(0, 12).Draw(t, "event"); {
	case kind <= 3:
		m.submit(drawGang(t, i), int64(i))
	case kind <= 5:
		m.setNode(drawNode(t))
	case kind == 6 && len(m.nodes) > 0:
		m.removeNode(rapid.SampledFrom(slices.Sorted(maps.Keys(m.nodes))).Draw(t, "lost"))
	case kind == 7 && len(ids) > 0:
		m.end(rapid.SampledFrom(ids).Draw(t, "ended"))
	case kind == 8 && len(m.going) > 0:
		m.gone(rapid.SampledFrom(slices.Sorted(maps.Keys(m.going))).Draw(t, "gone"))
	case (kind == 10 || kind == 11) && len(run) > 0:
		m.asks(rapid.SampledFrom(run).Draw(t, "grows"), i)
	case kind == 12 && len(run) > 0:
		m.shrinks(rapid.SampledFrom(run).Draw(t, "shrinks"))
	}
	m.decide()
}

// Whatever happens: a gang has places for all its pods or for none, no node and
// no quota is over-committed, evictions follow the policies and are never
// useless, preemption comes to an end, every waiting workload has a reason, and
// the same events give the same plans.
func TestPromisesHoldWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawPolicy(t))
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			m.step(i)
		}
		m.calm()
	})
}

// The same population, enqueued in any order, gets the same plan.
func TestTheOrderOfEnteringDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawPolicy(t)
		var nodes []capacity.Node
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			n := drawNode(t)
			n.Name = fmt.Sprintf("node-%d", i)
			nodes = append(nodes, n)
		}
		gangs := make([]*workload.Workload, rapid.IntRange(1, 12).Draw(t, "gangs"))
		for i := range gangs {
			gangs[i] = drawGang(t, i)
		}
		plan := func(nodeOrder, gangOrder []int) admission.Plan {
			tree, err := quota.New(c)
			if err != nil {
				t.Fatal(err)
			}
			s := admission.NewState(tree)
			for _, i := range gangOrder {
				w := *gangs[i]
				s.Enqueue(admission.Waiting{Workload: &w, Order: int64(i)})
			}
			for _, i := range nodeOrder {
				s.SetNode(nodes[i])
			}
			return admission.Decide(s, start)
		}
		want := plan(indices(len(nodes)), indices(len(gangs)))
		got := plan(rapid.Permutation(indices(len(nodes))).Draw(t, "order of nodes"), rapid.Permutation(indices(len(gangs))).Draw(t, "order of gangs"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("plans differ (-in order +shuffled):\n%s", diff)
		}
	})
}

// Whatever happened: once all gangs have ended nothing of them is left, and new
// ones get the places that they would get of a leader that knows nothing of it.
// Explaining leaves nothing behind either.
func TestWhatHasEndedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawPolicy(t))
		for i := range rapid.IntRange(1, 25).Draw(t, "events") {
			m.step(i)
			for _, id := range slices.Sorted(maps.Keys(m.waiting))[:min(1, len(m.waiting))] {
				admission.Explain(m.state, id, m.now)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(m.going)) {
			m.gone(id)
		}
		for _, id := range slices.Sorted(maps.Keys(m.gangs)) {
			m.end(id)
		}
		fresh := newModel(t, m.config)
		fresh.now = m.now
		for name := range m.nodes {
			m.removeNode(name)
		}
		m.decide()
		for i := range 4 {
			n := drawNode(t)
			n.Name = fmt.Sprintf("new-%d", i)
			m.setNode(n)
			fresh.setNode(n)
		}
		for i := 30; i < 36; i++ {
			w := drawGang(t, i)
			m.submit(w, int64(i))
			fresh.submit(w, int64(i))
		}
		if diff := cmp.Diff(fresh.decide().Admissions, m.decide().Admissions); diff != "" {
			t.Fatalf("what has ended matters (-without +with it):\n%s", diff)
		}
	})
}
