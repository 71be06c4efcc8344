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

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// model is what a test knows of the world by itself, beside the state.
type model struct {
	t       *rapid.T
	config  quota.Config
	state   *admission.State
	now     time.Time
	nodes   map[string]capacity.Node
	gangs   map[workload.ID]*workload.Workload
	order   map[workload.ID]int64
	came    map[workload.ID]time.Time
	waiting map[workload.ID]bool
	started map[workload.ID]admission.Admission
	since   map[workload.ID]time.Time
	going   map[workload.ID]bool
	growing map[workload.ID]growing
	// promised are preemptors that wait for their victims; a loss of capacity
	// breaks the promise.
	promised map[workload.ID]bool
	plans    []admission.Plan
}

// drawPolicy draws queues a to d in a small tree of cohorts, with quota of GPUs
// in two flavors and policies of all kinds.
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
	return parsed(t, text+"]}")
}

func parsed(t *rapid.T, text string) quota.Config {
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

func newModel(t *rapid.T, c quota.Config) *model {
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &model{
		t: t, config: c, state: admission.NewState(tree), now: start, nodes: map[string]capacity.Node{},
		gangs: map[workload.ID]*workload.Workload{}, order: map[workload.ID]int64{}, came: map[workload.ID]time.Time{}, waiting: map[workload.ID]bool{},
		started: map[workload.ID]admission.Admission{}, since: map[workload.ID]time.Time{}, going: map[workload.ID]bool{}, promised: map[workload.ID]bool{},
		growing: map[workload.ID]growing{},
	}
}

func (m *model) setNode(n capacity.Node) {
	if old, known := m.nodes[n.Name]; known && (!old.Allocatable.FitsIn(n.Allocatable) || old.Labels["kind"] != n.Labels["kind"]) {
		clear(m.promised)
	}
	m.nodes[n.Name] = n
	m.state.SetNode(n)
}

func (m *model) removeNode(name string) {
	clear(m.promised)
	delete(m.nodes, name)
	m.state.RemoveNode(admission.NodeKey{Cluster: "c", Name: name})
}

func (m *model) submit(w *workload.Workload, order int64) {
	m.gangs[w.ID], m.order[w.ID], m.waiting[w.ID] = w, order, true
	if _, back := m.came[w.ID]; !back {
		m.came[w.ID] = m.now
	}
	m.enqueue(w)
}

// enqueue has a workload wait; every other one has declared for how long it runs.
func (m *model) enqueue(w *workload.Workload) {
	m.state.Enqueue(admission.Waiting{
		Workload: w, Order: m.order[w.ID], Since: m.came[w.ID], RunTime: time.Duration(m.order[w.ID]%2*10) * time.Minute,
	})
}

// end has a workload finish or be cancelled.
func (m *model) end(id workload.ID) {
	delete(m.promised, id)
	switch _, runs := m.started[id]; {
	case m.waiting[id]:
		m.state.Dequeue(id)
		delete(m.waiting, id)
		delete(m.gangs, id)
	case runs && !m.going[id]:
		m.state.Leave(id)
		m.state.Release(id)
		delete(m.started, id)
		delete(m.growing, id)
		delete(m.gangs, id)
	}
}

// gone has the pods of an evicted gang go; it waits again at its old place.
func (m *model) gone(id workload.ID) {
	m.state.Release(id)
	delete(m.started, id)
	delete(m.going, id)
	m.submit(m.gangs[id], m.order[id])
}

// decide lets the state decide and holds the plan against the promises.
func (m *model) decide() admission.Plan {
	m.t.Helper()
	plan := admission.Decide(m.state, m.now)
	m.plans = append(m.plans, plan)
	for _, a := range plan.Growths { // whoever grows may be evicted behind
		m.grown(a)
	}
	stopped := false
	for _, v := range plan.Evictions {
		_, grows := m.growing[v.Workload]
		stopped = stopped || grows
		m.evicted(v)
	}
	for _, a := range plan.Admissions {
		m.admitted(a)
	}
	for id := range m.growing {
		if why := m.state.Reason(id); why == nil || why.Message == "" || why.Kind == workload.ReasonUnknown {
			m.t.Fatalf("workload %s waits to grow without a reason: %+v", id, why)
		}
	}
	for id := range m.waiting {
		switch why := m.state.Reason(id); {
		case why == nil || why.Kind == "" || why.Message == "":
			m.t.Fatalf("workload %s waits without a reason: %+v", id, why)
		case why.Kind == workload.ReasonUnknown:
			m.t.Fatalf("workload %s waits for a reason that is not known: %s", id, why.Message)
		}
	}
	for _, w := range plan.Waits {
		if w.Reason.Kind == workload.ReasonWaitingForEviction {
			m.promised[w.Workload] = true
		}
	}
	if m.state.Pending(m.now) && !stopped {
		m.t.Fatal("after a decision another one is pending")
	}
	return plan
}

func (m *model) evicted(v admission.Eviction) {
	if _, runs := m.started[v.Workload]; !runs || m.going[v.Workload] {
		m.t.Fatalf("%s is evicted, which does not run", v.Workload)
	}
	m.going[v.Workload] = true
	m.state.Leave(v.Workload)
	delete(m.growing, v.Workload)
	victim, preemptor := m.gangs[v.Workload], m.gangs[v.Reason.Preemption.Preemptor]
	if v.Reason.Kind != workload.ReasonPreempted || preemptor == nil || !m.waiting[preemptor.ID] && m.growing[preemptor.ID].set.Count == 0 || victim == preemptor {
		m.t.Fatalf("%s is evicted because of %+v", v.Workload, v.Reason)
	}
	order := m.order[preemptor.ID]
	if asked, grows := m.growing[preemptor.ID]; grows {
		order = asked.order
	}
	own, lower := victim.Queue == preemptor.Queue, victim.Priority < preemptor.Priority
	policy := m.state.Quota().Queue(preemptor.Queue).Preemption
	allowed := map[string]bool{
		"withinClusterQueue": own && (lower || policy.WithinClusterQueue == quota.LowerOrNewerEqualPriority &&
			victim.Priority == preemptor.Priority && m.order[victim.ID] > order),
		"reclaimWithinCohort": !own && (lower || policy.ReclaimWithinCohort == quota.Any),
		"borrowWithinCohort":  !own && lower && victim.Priority <= 1,
		"fairSharing":         !own && (lower || policy.ReclaimWithinCohort == quota.Any),
	}
	if !allowed[v.Reason.Preemption.Policy] {
		m.t.Fatalf("%+v is evicted for %+v by %q", victim, preemptor, v.Reason.Preemption.Policy)
	}
	if p := m.state.Quota().Queue(victim.Queue).Preemption; m.now.Sub(m.since[victim.ID]) < time.Duration(p.MinRunSeconds)*time.Second {
		m.t.Fatalf("%s is evicted %s after its start", victim.ID, m.now.Sub(m.since[victim.ID]))
	}
}

// admitted checks that all pods have places, that no node is over-committed by it
// and that its queue is within quota, by sums of its own.
func (m *model) admitted(a admission.Admission) { m.placed(a, a.Placements) }

// placed is admitted for a gang that gets the given of its places now.
func (m *model) placed(a admission.Admission, given []workload.Placement) {
	w := m.gangs[a.Workload]
	if !m.waiting[a.Workload] {
		m.t.Fatalf("%s is admitted, which does not wait", a.Workload)
	}
	delete(m.waiting, a.Workload)
	delete(m.promised, a.Workload)
	m.started[a.Workload], m.since[a.Workload] = a, m.now
	placed := map[string]int{}
	for _, p := range a.Placements {
		placed[p.PodSet] += p.Pods
	}
	for _, set := range w.PodSets {
		if placed[set.Name] != set.Count {
			m.t.Fatalf("%s has %d of %d pods of %s placed", w.ID, placed[set.Name], set.Count, set.Name)
		}
	}
	used := map[string]resource.List{}
	tree, _ := quota.New(m.config)
	for id, other := range m.started {
		for _, p := range other.Placements {
			for _, set := range m.gangs[id].PodSets {
				if set.Name == p.PodSet {
					used[p.Node] = used[p.Node].Plus(set.Template.Requests.Times(int64(p.Pods)))
				}
			}
		}
		tree.Queue(m.gangs[id].Queue).Use(quota.ChargesOf(m.gangs[id].PodSets, other.Flavors))
	}
	for _, p := range given {
		i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == p.PodSet })
		for name, amount := range w.PodSets[i].Template.Requests { // of others there may be less than nothing free
			if n := m.nodes[p.Node]; amount > 0 && used[p.Node][name] > n.Allocatable[name] {
				m.t.Fatalf("%s over-commits node %s: %s of %s", w.ID, p.Node, used[p.Node], n.Allocatable)
			}
		}
		for _, f := range a.Flavors {
			if f.PodSet == p.PodSet && f.Flavors["nvidia.com/gpu"] == "two" && m.nodes[p.Node].Labels["kind"] != "two" {
				m.t.Fatalf("%s has flavor two and is placed on %s", w.ID, p.Node)
			}
		}
	}
	if tree.Queue(w.Queue).Overused(quota.ChargesOf(w.PodSets, a.Flavors)) {
		m.t.Fatalf("%s uses more than queue %s may", w.ID, w.Queue)
	}
}

// calm lets the pods of evicted gangs go until nothing happens any more. It ends:
// preemption is no loop. And whoever had others evicted starts: no eviction is
// useless.
func (m *model) calm() {
	for round := range 200 {
		m.now = m.now.Add(2 * time.Minute) // nobody is protected any more
		promised := maps.Clone(m.promised)
		ids := slices.Sorted(maps.Keys(m.going))
		for _, id := range ids {
			m.gone(id)
		}
		plan := m.decide()
		for id := range promised {
			if len(ids) > 0 && m.waiting[id] {
				m.t.Fatalf("%s had others evicted, who are gone, and waits still: %+v", id, m.state.Reason(id))
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
