package admission_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// more asks for that number of additional pods of a gang that enter has made.
func more(s *admission.State, id workload.ID, pods int, order int64, gpus int64) {
	set := setOf("workers", pods, 0, gpus)
	set.Resized = pods
	s.Grow(admission.Growth{Workload: id, PodSets: []workload.PodSet{set}, Order: order, Since: start})
}

// What a gang grows by is held against quota like what is submitted, in the
// flavors that it has, and the gang is charged for all of it.
func TestAGrowingGangIsWithinQuota(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, ""))))
	s.SetNode(nodeOf("n", 8, 8))
	enter(t, s, 0, "x a 0 2")
	enter(t, s, 1, "y a 0 1")
	admission.Decide(s, start)
	more(s, "x", 2, 2, 1)
	plan := admission.Decide(s, start)
	if why := s.Reason("x"); len(plan.Growths) != 0 || why == nil || why.Kind != workload.ReasonQuota || why.Quota.Asked != 2 || why.Quota.Available != 1 {
		t.Fatalf("beyond quota the plan is %+v, the reason %+v", plan, why)
	}
	s.Leave("y")
	s.Release("y")
	plan = admission.Decide(s, start)
	if len(plan.Growths) != 1 || plan.Growths[0].Placements[0].Pods != 4 || len(plan.Growths[0].Flavors) != 1 {
		t.Fatalf("with enough quota the plan is %+v", plan)
	}
	enter(t, s, 3, "z a 0 1")
	admission.Decide(s, start)
	if why := s.Reason("z"); why == nil || why.Kind != workload.ReasonQuota || why.Quota.Used != 4 {
		t.Errorf("the next one waits because of %+v", why)
	}
	s.Shrink("x", []workload.PodSet{setOf("workers", 1, 0, 1)}, []workload.Placement{{PodSet: "workers", Node: "n", Pods: 1}})
	if plan := admission.Decide(s, start); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "z" {
		t.Errorf("when the gang has shrunk the plan is %+v", plan)
	}
}

// A gang grows in the cluster that it is in, and nowhere else.
func TestAGangGrowsInItsCluster(t *testing.T) {
	t.Parallel()
	there := func(cluster, name string, gpus int64) capacity.Node {
		n := nodeOf(name, 8, gpus)
		n.Cluster = cluster
		return n
	}
	s := admission.NewState(nil)
	s.SetNode(there("c", "n", 2))
	enter(t, s, 0, "x a 0 2")
	admission.Decide(s, start)
	s.SetNode(there("d", "m", 8))
	more(s, "x", 1, 1, 1)
	if plan := admission.Decide(s, start); len(plan.Growths) != 0 || s.Reason("x").Kind != workload.ReasonFit {
		t.Fatalf("with room in another cluster the plan is %+v, the reason %+v", plan, s.Reason("x"))
	}
	s.SetNode(there("c", "n2", 1))
	if plan := admission.Decide(s, start); len(plan.Growths) != 1 || len(plan.Growths[0].Placements) != 2 {
		t.Fatalf("with room in its own the plan is %+v", plan)
	}
}

// A gang that grows has others evicted by the policies of its queue, not itself,
// and gets what they free.
func TestAGrowingGangPreempts(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority"`))))
	s.SetNode(nodeOf("n", 8, 4))
	enter(t, s, 0, "x a 5 2")
	enter(t, s, 1, "y a 0 2")
	admission.Decide(s, start)
	more(s, "x", 1, 2, 1)
	now := start.Add(time.Minute)
	plan := admission.Decide(s, now)
	if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != "y" || s.Reason("x").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("the plan is %+v, the reason %+v", plan, s.Reason("x"))
	}
	s.Release("y")
	if plan = admission.Decide(s, now); len(plan.Growths) != 1 {
		t.Fatalf("when the victim is gone the plan is %+v, the reason %+v", plan, s.Reason("x"))
	}
}

// Silence of all clusters ends no nomination of a gang that grows: when its cluster reports again it
// has what its victims leave, and not a gang that came earlier than its request.
func TestAGrowingGangKeepsItsNominationInSilence(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]map[string]time.Time{"none is silent": nil, "all are silent": {"c": start}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority"`))))
			s.SetNode(nodeOf("n", 8, 4))
			enter(t, s, 0, "x a 5 2")
			enter(t, s, 1, "y a 0 2")
			admission.Decide(s, start)
			more(s, "x", 1, 9, 1)
			now := start.Add(time.Minute)
			if plan := admission.Decide(s, now); len(plan.Evictions) != 1 {
				t.Fatalf("the plan is %+v, want y evicted for x", plan)
			}
			enter(t, s, 3, "z a 5 2")
			s.SetSilent(silent)
			plan := admission.Decide(s, now)
			s.Release("y")
			if silent != nil {
				plan = admission.Decide(s, now)
			}
			if why := s.Reason("x"); len(plan.Growths)+len(plan.Admissions) > 0 || why.Kind != workload.ReasonWaitingForEviction {
				t.Errorf("before it can start the plan is %+v, and x waits because of %+v", plan, why)
			}
			s.SetSilent(nil)
			if plan = admission.Decide(s, now); len(plan.Growths) != 1 || len(plan.Admissions) != 0 {
				t.Errorf("the plan is %+v, want x to grow alone", plan)
			}
		})
	}
}

// A gang that is torn down loses its request for more places, with its nomination.
func TestAGangThatEndsStopsGrowing(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority"`))))
	s.SetNode(nodeOf("n", 8, 4))
	enter(t, s, 0, "x a 5 2")
	enter(t, s, 1, "y a 0 2")
	admission.Decide(s, start)
	more(s, "x", 2, 2, 1)
	now := start.Add(time.Minute)
	admission.Decide(s, now)
	s.Leave("x")
	s.Release("x")
	s.Release("y")
	enter(t, s, 3, "z a 0 4")
	if plan := admission.Decide(s, now); len(plan.Growths) != 0 || len(plan.Admissions) != 1 || s.Reason("x") != nil {
		t.Fatalf("the plan is %+v, the reason %+v", plan, s.Reason("x"))
	}
}

// Rules on domains hold for old and new pods together.
func TestAGrowingGangObeysItsRules(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeOf("n0", 8, 4))
	s.SetNode(nodeOf("n1", 8, 1))
	set := setOf("workers", 1, 0, 2)
	set.Template.Apart = []workload.Apart{{TopologyKey: "kubernetes.io/hostname", PodSets: []string{"workers"}}}
	enqueue(s, 0, "a", []workload.PodSet{set})
	admission.Decide(s, start)
	set.Resized = 1
	s.Grow(admission.Growth{Workload: "gang-0", PodSets: []workload.PodSet{set}, Order: 1, Since: start})
	plan := admission.Decide(s, start)
	if why := s.Reason("gang-0"); len(plan.Growths) != 0 || why.Kind != workload.ReasonTopology || !strings.Contains(why.Message, "topology constraints") {
		t.Fatalf("next to its own pod the plan is %+v, the reason %+v", plan, why)
	}
	if next := admission.Decide(s, start.Add(time.Minute)).NextAt; next.IsZero() {
		t.Error("nobody looks again")
	}
}

// asks has a started gang ask for more pods, or for none any more.
func (m *model) asks(id workload.ID, i int) {
	delete(m.promised, id)
	by := rapid.IntRange(0, 3).Draw(m.t, "by")
	if by == 0 {
		m.state.StopGrowing(id)
		delete(m.growing, id)
		return
	}
	set := m.gangs[id].PodSets[1]
	set.Count, set.Resized = by, by
	m.growing[id] = growing{set, int64(i)}
	m.state.Grow(admission.Growth{Workload: id, PodSets: []workload.PodSet{set}, Order: int64(i), Since: m.now})
}

// growing is what a gang of the model asks for.
type growing struct {
	set   workload.PodSet
	order int64
}

// shrinks takes one worker away from a started gang.
func (m *model) shrinks(id workload.ID) {
	a, w := m.started[id], *m.gangs[id]
	i := slices.IndexFunc(a.Placements, func(p workload.Placement) bool { return p.PodSet == "workers" })
	if i < 0 {
		return
	}
	a.Placements, w.PodSets = slices.Clone(a.Placements), slices.Clone(w.PodSets)
	w.PodSets[1].Count--
	if a.Placements[i].Pods--; a.Placements[i].Pods == 0 {
		a.Placements = slices.Delete(a.Placements, i, i+1)
	}
	m.started[id], m.gangs[id] = a, &w
	m.state.Shrink(id, w.PodSets, a.Placements)
}

// grown checks that a gang keeps its places, and all of it as if it had been
// admitted so.
func (m *model) grown(a admission.Admission) {
	asked, known := m.growing[a.Workload]
	if !known || m.going[a.Workload] {
		m.t.Fatalf("%s grows, which has not asked for it", a.Workload)
	}
	delete(m.growing, a.Workload)
	given := slices.Clone(a.Placements)
	for _, p := range m.started[a.Workload].Placements {
		i := slices.IndexFunc(a.Placements, func(q workload.Placement) bool { return q.PodSet == p.PodSet && q.Node == p.Node })
		if i < 0 || a.Placements[i].Pods < p.Pods {
			m.t.Fatalf("%s grows and loses its place %+v: %+v", a.Workload, p, a.Placements)
		}
		if a.Placements[i].Pods == p.Pods { // it may be on a node that is gone
			given = slices.DeleteFunc(given, func(q workload.Placement) bool { return q.PodSet == p.PodSet && q.Node == p.Node })
		}
	}
	w := *m.gangs[a.Workload]
	w.PodSets = slices.Clone(w.PodSets)
	w.PodSets[1].Count += asked.set.Count
	m.gangs[a.Workload] = &w
	since := m.since[a.Workload]
	m.waiting[a.Workload] = true
	m.placed(a, given)
	m.since[a.Workload] = since
}
