package admission_test

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// model is what a test knows of the world by itself, beside the state.
type model struct {
	t       *rapid.T
	config  quota.Config
	state   *admission.State
	now     time.Time
	nodes   map[string]capacity.Node
	gangs   map[workload.ID]*workload.Workload
	whole   map[workload.ID]*workload.Workload // as submitted, of those that run with fewer pods
	order   map[workload.ID]int64
	came    map[workload.ID]time.Time
	waiting map[workload.ID]bool
	started map[workload.ID]admission.Admission
	since   map[workload.ID]time.Time
	going   map[workload.ID]bool
	growing map[workload.ID]growing
	// promised are preemptors that wait for their victims; a loss of capacity
	// breaks the promise, and so does the eviction of one that was to grow.
	promised map[workload.ID]bool
	plans    []admission.Plan
	copies   bool // each decision is compared with that on a copy
}

func newModel(t *rapid.T, c quota.Config) *model {
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &model{
		t: t, config: c, state: admission.NewState(tree), now: start, nodes: map[string]capacity.Node{},
		gangs: map[workload.ID]*workload.Workload{}, whole: map[workload.ID]*workload.Workload{}, order: map[workload.ID]int64{}, came: map[workload.ID]time.Time{}, waiting: map[workload.ID]bool{},
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
	again := m.gangs[id]
	if whole := m.whole[id]; whole != nil {
		again = whole
		delete(m.whole, id)
	}
	m.submit(again, m.order[id])
}

// decide makes a decision and checks the plan against the promises.
func (m *model) decide() admission.Plan {
	m.t.Helper()
	var copied admission.Plan
	if m.copies {
		if path := admission.CopyDiffers(m.state); path != "" {
			m.t.Fatalf("of a copy, %s", path)
		}
		copied = admission.OnCopy(m.state, m.now)
	}
	plan := admission.Decide(m.state, m.now)
	if diff := cmp.Diff(copied, plan); m.copies && diff != "" {
		m.t.Fatalf("a copy decides otherwise (-copy +state):\n%s", diff)
	}
	m.plans = append(m.plans, plan)
	for _, a := range plan.Growths { // a gang that grows may be evicted later
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
		if why := m.state.Reason(id); why == nil || why.Message == "" || undecided(why) {
			m.t.Fatalf("workload %s waits to grow without a reason: %+v", id, why)
		}
	}
	for id := range m.waiting {
		switch why := m.state.Reason(id); {
		case why == nil || why.Kind == "" || why.Message == "":
			m.t.Fatalf("workload %s waits without a reason: %+v", id, why)
		case undecided(why) && !stopped:
			m.t.Fatalf("workload %s waits without a decision: %s", id, why.Message)
		}
	}
	for _, w := range plan.Waits {
		// Who has others evicted so that it can grow may be evicted itself, even then.
		if w.Reason.Kind == workload.ReasonWaitingForEviction && !m.going[w.Workload] {
			m.promised[w.Workload] = true
		}
	}
	if m.state.Pending(m.now) && !stopped {
		m.t.Fatal("after a decision another one is pending")
	}
	if !stopped {
		m.mustBeDone()
	}
	return plan
}

// mustBeDone checks that a decision that tries everything would do nothing more, with two
// exceptions: a nomination is settled when its victims are gone, although its places may
// be free before; and whether a gang finds places around a reservation depends on where
// the search begins. What follows from such a start is excepted with it: there must be
// nothing to do when everything is tried but the gangs that a reservation kept back and
// that would pass it now.
func (m *model) mustBeDone() {
	m.t.Helper()
	left, passing := m.leftToDo(nil)
	for kept := passing; len(left.Admissions)+len(left.Evictions)+len(left.Growths) > 0 && len(passing) > 0; kept = append(kept, passing...) {
		left, passing = m.leftToDo(kept)
	}
	if len(left.Admissions)+len(left.Evictions)+len(left.Growths) > 0 {
		for _, a := range slices.Concat(left.Admissions, left.Growths) {
			m.t.Logf("%s of queue %s waits: %+v", a.Workload, m.gangs[a.Workload].Queue, m.state.Reason(a.Workload))
		}
		for _, e := range left.Evictions {
			p := e.Reason.Preemption.Preemptor
			m.t.Logf("%s of queue %s has nobody evicted: %+v", p, m.gangs[p].Queue, m.state.Reason(p))
		}
		m.t.Fatalf("a decision that looks at everything would go on: admissions %+v, growths %+v, evictions %+v", left.Admissions, left.Growths, left.Evictions)
	}
}

// leftToDo is what a decision would do that looks at everything but those kept
// back, without what is excepted; passing are those of it that pass a reservation.
func (m *model) leftToDo(kept []workload.ID) (left admission.Plan, passing []workload.ID) {
	left = admission.DecideAfresh(m.state, m.now, kept...)
	excepted := func(a admission.Admission) bool {
		kind := m.state.Reason(a.Workload).Kind
		if kind == workload.ReasonBehindHead && !slices.Contains(kept, a.Workload) {
			passing = append(passing, a.Workload)
		}
		return kind == workload.ReasonWaitingForEviction || kind == workload.ReasonBehindHead
	}
	left.Admissions, left.Growths = slices.DeleteFunc(left.Admissions, excepted), slices.DeleteFunc(left.Growths, excepted)
	return left, passing
}

func (m *model) evicted(v admission.Eviction) {
	if _, runs := m.started[v.Workload]; !runs || m.going[v.Workload] {
		m.t.Fatalf("%s is evicted, which does not run", v.Workload)
	}
	m.going[v.Workload] = true
	m.state.Leave(v.Workload)
	delete(m.growing, v.Workload)
	delete(m.promised, v.Workload) // it was to grow
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
func (m *model) admitted(a admission.Admission) {
	if a.PodSets != nil {
		m.smaller(a)
	}
	m.placed(a, a.Placements)
}

// smaller checks that a gang starts with fewer pods only as far as its submitter allows.
func (m *model) smaller(a admission.Admission) {
	whole := m.gangs[a.Workload]
	reduced := *whole
	reduced.PodSets = a.PodSets
	fewer := false
	for i, set := range whole.PodSets {
		got := a.PodSets[i]
		fewer = fewer || got.Count < set.Count
		if least := set.MinCount; got.Count > set.Count || got.Count < set.Count && (least == 0 || got.Count < least) || got.Resized != got.Count-set.Count {
			m.t.Fatalf("%s of %d to %d pods in %s starts with %d (resized %d)", whole.ID, least, set.Count, set.Name, got.Count, got.Resized)
		}
	}
	if !fewer {
		m.t.Fatalf("%s has a reason to start with fewer pods, and starts with all", whole.ID)
	}
	m.whole[a.Workload], m.gangs[a.Workload] = whole, &reduced
}

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
		tree.Queue(m.gangs[id].Queue).Allocate(quota.ChargesOf(m.gangs[id].PodSets, other.Flavors))
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

// undecided reports whether a reason means that there is no answer yet.
func undecided(why *workload.Reason) bool {
	return why.Kind == workload.ReasonUnknown || why.Kind == workload.ReasonPending
}
