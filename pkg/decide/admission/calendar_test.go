package admission_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// maintenance reserves nodes for no gang.
func maintenance(from, until time.Time, nodes ...string) quota.Reservation {
	return quota.Reservation{Name: "window", From: from, Until: until, Nodes: nodes, Since: start, By: "ann", Why: "new driver"}
}

// Whatever the strategy: a gang gets no place on a reserved node unless the node is for it
// or the gang is declared to end before. Gangs for which it is reserved get their places.
func TestReservedNodesAreSpared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(label string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, label)) * time.Minute
		}
		reserved := maintenance(start.Add(minutes("from", 0, 60)), time.Time{}, "node-0")
		reserved.Until = reserved.From.Add(minutes("lasts", 1, 60))
		if rapid.Bool().Draw(t, "for a queue") {
			reserved.ClusterQueue = "a"
		}
		config := drawPolicyOf(t, allStrategies)
		config.Reservations = []quota.Reservation{reserved}
		m := newModel(t, config)
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			m.step(i)
			for _, a := range m.plans[len(m.plans)-1].Admissions {
				run := time.Duration(m.order[a.Workload]%2*10) * time.Minute // as the model declares it
				uses := slices.ContainsFunc(a.Placements, func(p workload.Placement) bool { return p.Node == "node-0" })
				if uses && reserved.Conflicts(m.now, run) && !reserved.For(m.gangs[a.Workload].Queue, m.gangs[a.Workload]) {
					t.Fatalf("%s, which runs for %s, starts at %s on a node that is reserved from %s until %s", a.Workload, run, m.now, reserved.From, reserved.Until)
				}
			}
		}
	})
}

// A gang starts on a reserved node when it ends before, and not otherwise; the reason of
// one that waits names the node, the times and who reserved it.
func TestAWindowDrainsInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    time.Duration
		by     func(*quota.Reservation, *workload.Workload)
		starts bool
	}{
		"ends before":         {run: time.Hour, starts: true},
		"ends within":         {run: 61 * time.Minute},
		"declares nothing":    {},
		"of the queue":        {by: func(r *quota.Reservation, _ *workload.Workload) { r.ClusterQueue = "queue" }, starts: true},
		"of another queue":    {by: func(r *quota.Reservation, _ *workload.Workload) { r.ClusterQueue = "other" }},
		"of the user":         {by: func(r *quota.Reservation, w *workload.Workload) { r.User, w.Submitter = "http/ann", "http/ann" }, starts: true},
		"of another user":     {by: func(r *quota.Reservation, w *workload.Workload) { r.User, w.Submitter = "http/ann", "http/bob" }},
		"the workload itself": {by: func(r *quota.Reservation, _ *workload.Workload) { r.Workload = "gang-0" }, starts: true},
		"the workload by its name": {by: func(r *quota.Reservation, w *workload.Workload) {
			r.Workload, w.Namespace, w.Name = "team/train", "team", "train"
		}, starts: true},
		"in another cluster": {by: func(r *quota.Reservation, _ *workload.Workload) { r.Cluster = "other" }, starts: true},
		"of other labels": {by: func(r *quota.Reservation, _ *workload.Workload) {
			r.Nodes, r.NodeLabels = nil, map[string]string{"pool": "b"}
		}, starts: true},
		"of its labels": {by: func(r *quota.Reservation, _ *workload.Workload) {
			r.Nodes, r.NodeLabels = nil, map[string]string{"kubernetes.io/hostname": "one"}
		}},
		"is over": {by: func(r *quota.Reservation, _ *workload.Workload) {
			r.From, r.Until = start.Add(-time.Hour), start
		}, starts: true},
	} {
		for _, strategy := range allStrategies {
			t.Run(name+" "+strategy, func(t *testing.T) {
				t.Parallel()
				w := &workload.Workload{ID: "gang-0", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)}}
				reserved := maintenance(start.Add(time.Hour), start.Add(2*time.Hour), "one")
				if c.by != nil {
					c.by(&reserved, w)
				}
				s := admission.NewState(treeOf(t, quota.Config{
					ClusterQueues: []quota.ClusterQueue{{Name: "queue", Strategy: strategy}}, Reservations: []quota.Reservation{reserved},
				}))
				s.SetNode(nodeOf("one", 8, 8))
				s.Enqueue(admission.Waiting{Workload: w, RunTime: c.run, Since: start})
				plan := admission.Decide(s, start)
				if started := len(plan.Admissions) == 1; started != c.starts {
					t.Fatalf("it starts: %t, want %t: %+v", started, c.starts, s.Reason("gang-0"))
				}
				if c.starts {
					return
				}
				why := s.Reason("gang-0")
				if why == nil || why.Kind != workload.ReasonReserved || !strings.Contains(why.Message, "node one is reserved for") || !strings.Contains(why.Message, "by ann: new driver") {
					t.Errorf("it waits for %+v", why)
				}
				if plan := admission.Decide(s, reserved.Until); len(plan.Admissions) != 1 {
					t.Errorf("after the reservation it waits for %+v", s.Reason("gang-0"))
				}
			})
		}
	}
}

// The decision comes by itself when a reservation begins that evicts, and when it ends.
func TestADecisionIsDueWhenAReservationBeginsAndEnds(t *testing.T) {
	t.Parallel()
	reserved := maintenance(start.Add(time.Hour), start.Add(2*time.Hour), "one")
	s := admission.NewState(nil)
	s.SetNode(nodeOf("one", 8, 8))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	if plan := admission.Decide(s, start); len(plan.Admissions) != 1 {
		t.Fatalf("the plan is %+v", plan)
	}
	reserved.Evict = true
	s.Reconfigure(treeOf(t, quota.Config{Reservations: []quota.Reservation{reserved}}))
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	plan := admission.Decide(s, start)
	if len(plan.Admissions)+len(plan.Evictions) > 0 || !plan.NextAt.Equal(reserved.From) {
		t.Fatalf("the plan is %+v, want nothing until %s", plan, reserved.From)
	}
	if s.Pending(reserved.From.Add(-time.Second)) || !s.Pending(reserved.From) {
		t.Error("a decision is due when the reservation begins, and not before")
	}
	plan = admission.Decide(s, reserved.From)
	if len(plan.Evictions) != 1 || plan.Evictions[0].Reason.Kind != workload.ReasonDrained || !plan.NextAt.Equal(reserved.Until) {
		t.Fatalf("the plan is %+v, want one eviction and the next decision at %s", plan, reserved.Until)
	}
	s.Release("gang-0")
	if plan := admission.Decide(s, reserved.From.Add(time.Minute)); len(plan.Admissions) != 0 {
		t.Errorf("within the window the plan is %+v", plan)
	}
	if plan := admission.Decide(s, reserved.Until); len(plan.Admissions) != 1 {
		t.Errorf("after the window the plan is %+v", plan)
	}
}

// TestTheWorkOnReservationsIsBounded: of 1,000 gangs in line, those far back have none, and
// the first has its own, also when all are made again.
func TestTheWorkOnReservationsIsBounded(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{Depth: quota.MaxDepth},
	}}}))
	enter := func(i, nodes int, run time.Duration) {
		s.Enqueue(admission.Waiting{
			Order: int64(i), Since: start, RunTime: run,
			Workload: &workload.Workload{ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "queue", PodSets: []workload.PodSet{setOf("workers", nodes, 1, 8)}},
		})
	}
	for i := range 100 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
		enter(i, 1, time.Duration(i+1)*time.Minute)
	}
	decide(s)
	for i := range 1000 {
		enter(100+i, 2+i%30, time.Duration(1+i%50)*time.Hour)
	}
	for _, ended := range []workload.ID{"", "gang-50"} {
		s.Leave(ended)
		s.Release(ended)
		decide(s)
		reserved := map[workload.ID]bool{}
		for _, r := range s.HeadReservations() {
			reserved[r.Workload] = true
		}
		if !reserved["gang-100"] || !reserved["gang-110"] || reserved["gang-1099"] {
			t.Errorf("after the end of %q %d gangs have reservations, the first: %t, the last: %t", ended, len(reserved), reserved["gang-100"], reserved["gang-1099"])
		}
	}
}

// With run times that are kept, a gang that is the first in line starts no later than it is
// promised then, whatever the depth and whatever passes it.
func TestTheFirstInLineKeepsItsPromiseAtAnyDepth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, depth := rapid.IntRange(1, 5).Draw(t, "nodes"), rapid.IntRange(1, 6).Draw(t, "depth")
		tree, err := quota.New(quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue", Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{Depth: depth}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := &stream{now: start, ends: map[workload.ID]time.Time{}, started: map[workload.ID]time.Time{}, declared: true, state: admission.NewState(tree)}
		for i := range nodes {
			s.state.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 8, 8))
		}
		promised := map[workload.ID]time.Time{}
		for tick := range 60 {
			for range rapid.IntRange(0, 2).Draw(t, "arrivals") {
				run := time.Duration(rapid.IntRange(1, 30).Draw(t, "run")) * time.Second
				s.submit(fmt.Sprintf("gang-%d-%d", tick, len(s.ends)), "queue", setOf("workers", rapid.IntRange(1, nodes).Draw(t, "pods"), 1, 8), run)
			}
			s.step()
			reserved := s.state.HeadReservations()
			if len(reserved) > depth {
				t.Fatalf("%d reservations, want at most %d", len(reserved), depth)
			}
			for _, r := range reserved {
				if _, known := promised[r.Workload]; !known && s.state.Position(r.Workload) == 1 {
					promised[r.Workload] = r.Start
				}
			}
			for id, by := range promised {
				if s.state.Reason(id) != nil && s.now.Add(-time.Second).After(by) {
					t.Fatalf("%s waits at %s, and was promised %s: %+v", id, s.now, by, s.state.Reason(id))
				}
			}
		}
	})
}

// Pods that have lost their node get no place on one that is reserved for others while their
// gang may run.
func TestLostPodsSpareReservedNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run, after time.Duration
		queue      string // for which the node is reserved
		fits       bool
	}{
		"without end":      {},
		"ends before":      {run: 30 * time.Minute, fits: true},
		"ends within":      {run: 90 * time.Minute},
		"is overdue":       {run: 10 * time.Minute, after: 20 * time.Minute},
		"of the queue":     {queue: "queue", fits: true},
		"it has all ended": {after: 2 * time.Hour, fits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reserved := maintenance(start.Add(time.Hour), start.Add(2*time.Hour), "two")
			reserved.ClusterQueue = c.queue
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue"}}, Reservations: []quota.Reservation{reserved}}))
			s.SetNode(nodeOf("one", 8, 8))
			w := &workload.Workload{ID: "gang-0", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)}}
			s.Enqueue(admission.Waiting{Workload: w, RunTime: c.run, Since: start})
			if plan := admission.Decide(s, start); len(plan.Admissions) != 1 {
				t.Fatalf("it waits for %+v", s.Reason("gang-0"))
			}
			s.SetNode(nodeOf("two", 8, 8))
			s.RemoveNode(admission.NodeKey{Cluster: nodeOf("one", 8, 8).Cluster, Name: "one"})
			places, fits := s.Replace("gang-0", nil, w.PodSets, start.Add(c.after))
			if fits != c.fits {
				t.Errorf("it fits: %t, at %+v, want %t", fits, places, c.fits)
			}
		})
	}
}

// TestAHoldOfABudgetEndsWithItsPeriod: also when the configuration goes on to have it.
func TestAHoldOfABudgetEndsWithItsPeriod(t *testing.T) {
	t.Parallel()
	b := quota.Budget{Name: "b", Queue: "queue", Resource: "nvidia.com/gpu", Hours: 1, Period: quota.Day, Action: quota.BudgetHolds}
	_, until := b.PeriodAt(start)
	policy := quota.Config{Budgets: []quota.Budget{b}, BudgetHolds: []quota.BudgetStop{b.Stop(1, start.Add(-time.Second), until)}}
	s := admission.NewState(treeOf(t, policy))
	s.SetNode(nodeOf("one", 8, 8))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	plan := admission.Decide(s, start)
	if len(plan.Admissions) > 0 || !plan.NextAt.Equal(until) || s.Pending(until.Add(-time.Second)) || !s.Pending(until) {
		t.Fatalf("the plan is %+v; want nothing until %s", plan, until)
	}
	if plan := admission.Decide(s, until); len(plan.Admissions) != 1 || s.HeldBy("", "queue") != "" {
		t.Fatalf("after the period the plan is %+v, and it is held by %q", plan, s.HeldBy("", "queue"))
	}
	s.Reconfigure(treeOf(t, policy))
	if why := s.HeldBy("", "queue"); why != "" {
		t.Errorf("after another change it is held by %q", why)
	}
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	if plan := admission.Decide(s, until.Add(time.Second)); len(plan.Admissions) != 1 {
		t.Errorf("after another change the plan is %+v", plan)
	}
}

// A gang that leaves reserved nodes to others has gangs evicted for it once the reservation has
// ended.
func TestGangsAreEvictedWhenAReservationHasEnded(t *testing.T) {
	t.Parallel()
	reserved := maintenance(start.Add(10*time.Minute), start.Add(20*time.Minute), "one")
	s := admission.NewState(treeOf(t, quota.Config{
		ClusterQueues: []quota.ClusterQueue{{Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}},
		Reservations:  []quota.Reservation{reserved},
	}))
	s.SetNode(nodeOf("one", 8, 1))
	gang := func(i int, priority int32, run time.Duration) {
		s.Enqueue(admission.Waiting{Order: int64(i), RunTime: run, Since: start, Workload: &workload.Workload{
			ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "queue", Priority: priority, PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)},
		}})
	}
	gang(0, 0, 5*time.Minute)
	if plan := admission.Decide(s, start); len(plan.Admissions) != 1 {
		t.Fatalf("the plan is %+v, want a gang that ends before", plan)
	}
	gang(1, 9, 0)
	for _, step := range []struct{ at, next time.Time }{{start.Add(time.Minute), reserved.From}, {reserved.From, reserved.Until}} {
		if plan := admission.Decide(s, step.at); len(plan.Evictions) > 0 || !plan.NextAt.Equal(step.next) {
			t.Fatalf("the plan is %+v, want nothing until %s", plan, step.next)
		}
	}
	if plan := admission.Decide(s, reserved.Until); len(plan.Evictions) != 1 {
		t.Errorf("the plan is %+v, want the eviction of gang-0", plan)
	}
}
