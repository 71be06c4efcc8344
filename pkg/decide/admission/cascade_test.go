package admission_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// A gang is not evicted where those are enough that it would evict in turn to come back.
func TestNoCascadeIsLargerThanTheDirectSet(t *testing.T) {
	t.Parallel()
	const evicts = `"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}`
	owner := gpuQueue("c", 8, "")
	for name, test := range map[string]struct {
		queues  []string
		gpus    int64
		running []string
		want    string
	}{
		"one that would evict both":        {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, evicts), owner}, 8, []string{"u1 a 0 2", "u2 a 0 2", "v b 50 4"}, "evicts u2 u1"},
		"one that may evict none":          {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, ""), owner}, 8, []string{"u1 a 0 2", "u2 a 0 2", "v b 50 4"}, "evicts v"},
		"one of the same priority":         {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, evicts), owner}, 8, []string{"u1 a 0 2", "u2 a 0 2", "v b 0 4"}, "evicts v"},
		"the others are not enough":        {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, evicts), owner}, 6, []string{"u1 a 0 1", "u2 a 0 1", "v b 50 4"}, "evicts v"},
		"two, of which one would evict":    {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, evicts), owner}, 8, []string{"u1 a 0 2", "t b 0 2", "v b 50 4"}, "evicts t u1"},
		"one that would evict one of them": {[]string{gpuQueue("a", 4, evicts), gpuQueue("b", 0, evicts), owner}, 9, []string{"u1 a 0 2", "u2 a 0 2", "v b 50 4"}, "evicts u2 u1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := play(t, gpuPolicy(t, false, test.queues...), []capacity.Node{nodeOf("node", 64, test.gpus)}, test.running, "w a 100 4"); got != test.want {
				t.Errorf("the gang %s, want %s", got, test.want)
			}
		})
	}
}

// A victim that starts again in another cluster has no others evicted, so it goes.
func TestAVictimWithRoomElsewhereGoes(t *testing.T) {
	t.Parallel()
	const evicts = `"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority"}`
	for name, test := range map[string]struct {
		gpus int64 // of the other cluster
		want string
	}{
		"with room":           {5, "evicts v"},
		"with less than that": {4, "evicts u2 u1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 6, evicts), gpuQueue("b", 0, evicts), gpuQueue("c", 20, ""))))
			s.SetNode(nodeOf("node", 64, 12))
			for i, text := range []string{"u1 a 0 3", "u2 a 0 3", "v b 50 5"} {
				enter(t, s, i, text)
				if plan := admission.Decide(s, start.Add(time.Duration(i-5)*time.Minute)); len(plan.Admissions) != 1 {
					t.Fatalf("%s does not start: %+v", text, plan)
				}
			}
			other := nodeOf("other", 64, test.gpus)
			other.Cluster = "d"
			s.SetNode(other)
			w := enter(t, s, 3, "w a 100 6")
			if got := answerTo(t, s, w, admission.Decide(s, start)); got != test.want {
				t.Errorf("the gang %s, want %s", got, test.want)
			}
		})
	}
}

// Gangs of the queue with the largest share go, also when another set is weighed that has none
// of that queue: its price is that among all candidates.
func TestTheLargestShareGoesWhateverElseIsWeighed(t *testing.T) {
	t.Parallel()
	queues := []string{gpuQueue("a", 6, `"reclaimWithinCohort": "Any"`), gpuQueue("b", 1, ""), gpuQueue("c", 5, "")}
	if got := play(t, gpuPolicy(t, true, queues...), []capacity.Node{nodeOf("node", 64, 10)}, []string{"x b 1 4", "y c 1 4", "z c 0 2"}, "w a 1 1"); got != "evicts x" {
		t.Errorf("the gang %s, want evicts x", got)
	}
}

// A victim that is submitted again evicts no gangs that would have been enough in its place,
// by trying it: what it evicts and the other victims are not permitted, or not enough.
func TestNoVictimComesBackAtAGreaterCost(t *testing.T) {
	t.Parallel()
	draws, returns := 0, 0
	for rounds := 0; rounds < 200 && returns == 0; rounds++ { // few victims evict others
		rapid.Check(t, func(t *rapid.T) {
			draws++
			returns += checkReturns(t)
		})
	}
	t.Logf("in %d draws %d victims evict others when they come back", draws, returns)
	if returns == 0 {
		t.Errorf("in %d draws no victim evicts others when it comes back", draws)
	}
}

// checkReturns plays a siege on, and returns how many of its victims evict others of a lower
// priority to come back.
func checkReturns(t *rapid.T) (returns int) {
	g := drawSiege(t)
	plan := g.play(g.tree(), g.running)
	for _, eviction := range plan.Evictions {
		later := g.evictedBy(plan, eviction.Workload)
		if len(later) == 0 {
			continue
		}
		returns++
		r := g.rules()
		named := func(id workload.ID) target {
			return r.all[slices.IndexFunc(r.all, func(t target) bool { return t.Workload.ID == id })]
		}
		var direct []target
		lower := true
		for _, other := range plan.Evictions {
			if other.Workload != eviction.Workload {
				direct = append(direct, named(other.Workload))
			}
		}
		for _, id := range later {
			lower = lower && named(id).Workload.Priority < named(eviction.Workload).Workload.Priority && r.obeys(named(id))
			direct = append(direct, named(id))
		}
		if lower && r.permits(direct) && r.starts(direct) {
			t.Fatalf("%+v are evicted, %s evicts %v when it comes back, and these in its place would have been enough", plan.Evictions, eviction.Workload, later)
		}
	}
	return returns
}

// evictedBy starts the waiting gang in place of its victims, submits one of these again, and
// returns whom it evicts of those that ran.
func (s *siege) evictedBy(plan admission.Plan, victim workload.ID) (evicted []workload.ID) {
	state := admission.NewState(s.tree())
	for _, n := range s.nodes {
		state.SetNode(n)
	}
	var back admission.Started
	for _, g := range s.running {
		if g.Workload.ID == victim {
			back = g
		}
		if !slices.ContainsFunc(plan.Evictions, func(e admission.Eviction) bool { return e.Workload == g.Workload.ID }) {
			state.Start(g)
		}
	}
	state.Enqueue(s.waiting)
	if started := admission.Decide(state, start); len(started.Admissions) != 1 {
		s.t.Fatalf("without its victims the gang does not start: %+v", started)
	}
	w := *back.Workload
	state.Enqueue(admission.Waiting{Workload: &w, Order: back.Order})
	for _, e := range admission.Decide(state, start.Add(time.Minute)).Evictions {
		if e.Workload == s.waiting.Workload.ID {
			return nil // it is another story
		}
		evicted = append(evicted, e.Workload)
	}
	return evicted
}

// permits reports whether the set may be evicted.
func (r *rules) permits(set []target) bool {
	if !r.config.FairSharing.Enable {
		return r.classical(r.orders(set)[0])
	}
	return slices.ContainsFunc(r.orders(set), func(set []target) bool { return r.fair(set, false) })
}

// sparesOne reports whether the set leaves one out that is in a cheapest set and is of a higher
// priority than all that go in its place, one of which it may evict.
func (r *rules) sparesOne(set []target, want bill) bool {
	return slices.ContainsFunc(r.setsAt(want), func(cheapest []target) bool {
		var instead []target
		for _, t := range set {
			if !slices.ContainsFunc(cheapest, func(c target) bool { return c.Workload.ID == t.Workload.ID }) {
				instead = append(instead, t)
			}
		}
		return slices.ContainsFunc(cheapest, func(spared target) bool {
			return !slices.ContainsFunc(set, func(t target) bool { return t.Workload.ID == spared.Workload.ID }) &&
				!slices.ContainsFunc(instead, func(t target) bool { return t.Workload.Priority >= spared.Workload.Priority }) &&
				slices.ContainsFunc(instead, func(t target) bool { return r.mayEvict(spared, t) })
		})
	})
}

// mayEvict reports whether the policies of a gang's queue let it evict one of a lower priority.
func (r *rules) mayEvict(g, other target) bool {
	i := slices.IndexFunc(r.config.ClusterQueues, func(q quota.ClusterQueue) bool { return q.Name == g.Workload.Queue })
	policy := r.config.ClusterQueues[i].Preemption
	if g.Workload.Queue == other.Workload.Queue {
		return policy.WithinClusterQueue != quota.Never
	}
	return policy.ReclaimWithinCohort != quota.Never
}

// setsAt returns the sets at that cost.
func (r *rules) setsAt(cost bill) (sets [][]target) {
	all := slices.DeleteFunc(slices.Clone(r.all), func(t target) bool { return !r.obeys(t) })
	for mask := 1; mask < 1<<len(all); mask++ {
		var set []target
		for i, t := range all {
			if mask>>i&1 == 1 {
				set = append(set, t)
			}
		}
		if r.billOf(slices.Clone(set)) == cost {
			sets = append(sets, set)
		}
	}
	return sets
}
