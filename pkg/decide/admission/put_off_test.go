package admission_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// spreadOver is pods of four GPUs of which each node takes as many: packing does not place them, so
// each answer is one of the exact search.
func spreadOver(nodes int) []workload.PodSet {
	set := setOf("workers", nodes, 0, 4)
	set.Template.Spread = []workload.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1}}
	return []workload.PodSet{set}
}

// fourGPUs returns a state with nodes of four GPUs, in which gang x of queue a has run for an hour
// on some of them.
func fourGPUs(t *testing.T, c quota.Config, nodes, taken int) *admission.State {
	t.Helper()
	s := admission.NewState(treeOf(t, c))
	for i := range nodes {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 64, 4))
	}
	s.Enqueue(admission.Waiting{Since: start, RunTime: 2 * time.Hour, Workload: &workload.Workload{ID: "x", Queue: "a", PodSets: []workload.PodSet{setOf("workers", taken, 0, 4)}}})
	if plan := decide(s); len(plan.Admissions) != 1 {
		t.Fatalf("x does not start: %+v", plan)
	}
	return s
}

// A search that is put off for want of steps is repeated, and has then the answer that it would
// have had at once. Meanwhile nothing is concluded from it: no gang is evicted, and none loses its
// place. Whatever number of steps is left, so that each search of a decision is cut in turn.
func TestWhatIsPutOffComesToTheSame(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Hour)
	for name, c := range putOff(now) {
		comesToTheSame(t, name, c, now, func(s *admission.State, steps int) { admission.LeaveSteps(s, c.queue, steps, now) })
		comesToTheSame(t, name+", of all queues", c, now, func(s *admission.State, steps int) { admission.LeaveAllSteps(s, steps, now) })
	}
}

func comesToTheSame(t *testing.T, name string, c limited, now time.Time, leave func(s *admission.State, steps int)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		want := untilSettled(c.of(t), now)
		cut := 0 // with how many steps left a search is put off
		for steps := range 400 {
			s := c.of(t)
			before := s.Searched().Cut
			leave(s, steps)
			if got := untilSettled(s, now); !slices.Equal(got, want) {
				t.Fatalf("with %d steps left it comes to %q, want %q", steps, got, want)
			}
			if s.Searched().Cut > before {
				cut++
			}
		}
		if cut == 0 || cut == 400 {
			t.Errorf("a search is put off with %d of 400 numbers of steps, want some", cut)
		}
		t.Logf("it comes to %q; a search is put off with fewer than %d steps", want, cut)
	})
}

// limited is a state in which the steps of a queue are limited.
type limited struct {
	queue string
	of    func(t *testing.T) *admission.State
}

func putOff(now time.Time) map[string]limited {
	const lower = `"withinClusterQueue": "LowerPriority"`
	wait := func(s *admission.State, order int64, id workload.ID, queue string, nodes int, run time.Duration) {
		s.Enqueue(admission.Waiting{Order: order, Since: now, RunTime: run, Workload: &workload.Workload{ID: id, Queue: queue, Priority: 9, PodSets: spreadOver(nodes)}})
	}
	backfill := func(t *testing.T) quota.Config {
		c := gpuPolicy(t, false, gpuQueue("a", -1, ""), gpuQueue("b", -1, ""), gpuQueue("h", -1, ""))
		c.ClusterQueues[2].Strategy = quota.Backfill
		return c
	}
	return map[string]limited{
		"it starts": {"b", func(t *testing.T) *admission.State {
			s := fourGPUs(t, gpuPolicy(t, false, gpuQueue("a", -1, ""), gpuQueue("b", -1, "")), 3, 1)
			wait(s, 2, "w", "b", 2, 0)
			return s
		}},
		"evictions for quota": {"a", func(t *testing.T) *admission.State {
			s := fourGPUs(t, gpuPolicy(t, false, gpuQueue("a", 8, lower)), 2, 2)
			wait(s, 2, "w", "a", 2, 0)
			return s
		}},
		"evictions for places": {"a", func(t *testing.T) *admission.State {
			s := fourGPUs(t, gpuPolicy(t, false, gpuQueue("a", -1, lower)), 2, 2)
			wait(s, 2, "w", "a", 2, 0)
			return s
		}},
		"a nomination": {"a", func(t *testing.T) *admission.State { return nominatedForSpread(t, now) }},
		"a nomination that waits for others": {"a", func(t *testing.T) *admission.State {
			s := nominatedForSpread(t, now)
			s.SetNode(nodeOf("node-2", 64, 4))
			s.Start(admission.Started{
				Workload: &workload.Workload{ID: "y", Queue: "b", PodSets: []workload.PodSet{setOf("workers", 1, 0, 4)}}, Order: 4, Cluster: "c", Terminating: true, Admitted: start,
				Placements: []workload.Placement{{PodSet: "workers", Node: "node-2", Pods: 1}},
			})
			s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "node-0"})
			return s
		}},
		"a request for nodes": {"queue", func(t *testing.T) *admission.State {
			s := askingState(t, askingConfig(100), nodeOf("a", 64, 4), nodeOf("b", 64, 4))
			decide(s)
			wait(s, 2, "w", "queue", 3, 0)
			return s
		}},
		"the reservation of a head": {"h", func(t *testing.T) *admission.State {
			s := fourGPUs(t, backfill(t), 3, 1)
			wait(s, 2, "w", "h", 3, time.Hour)
			return s
		}},
		"places before a head": {"b", func(t *testing.T) *admission.State {
			s := fourGPUs(t, backfill(t), 3, 1)
			wait(s, 1, "head", "h", 3, time.Hour)
			admission.Decide(s, now.Add(-time.Minute))
			wait(s, 2, "w", "b", 2, time.Minute)
			return s
		}},
	}
}

// nominatedForSpread returns a state in which gang w was nominated a minute ago, and whose
// victim is gone now: a gang of another queue waits for the places, too.
func nominatedForSpread(t *testing.T, now time.Time) *admission.State {
	t.Helper()
	s := fourGPUs(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`), gpuQueue("b", -1, "")), 2, 2)
	s.Enqueue(admission.Waiting{Order: 2, Since: now, Workload: &workload.Workload{ID: "w", Queue: "a", Priority: 9, PodSets: spreadOver(2)}})
	if plan := admission.Decide(s, now.Add(-time.Minute)); len(plan.Evictions) != 1 {
		t.Fatalf("nothing is evicted: %+v", plan)
	}
	s.Release("x")
	enter(t, s, 3, "thief b 10 1")
	return s
}

// A nomination whose search is put off is not searched for before the queue may take a whole search:
// decisions that come one after the other would each spend what there is by then.
func TestANominationIsNotSearchedForBitByBit(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Hour)
	s := nominatedForSpread(t, now)
	admission.UseUp(s, "a", now)
	due := admission.Decide(s, now).NextAt
	before := s.Searched()
	if before.Cut == 0 || !due.After(now) {
		t.Fatalf("the search is not put off: the next decision is at %s, searched is %+v", due, before)
	}
	for i := range 3 {
		now = now.Add(10 * time.Microsecond)
		enter(t, s, 4+i, fmt.Sprintf("later-%d b 0 5", i))
		if plan := admission.Decide(s, now); !plan.NextAt.Equal(due) {
			t.Errorf("then the next decision is at %s, want %s", plan.NextAt, due)
		}
	}
	if got := s.Searched().Cut; got != before.Cut {
		t.Errorf("%d searches are put off meanwhile", got-before.Cut)
	}
	if plan := admission.Decide(s, due); len(plan.Admissions) == 0 || plan.Admissions[0].Workload != "w" {
		t.Errorf("when it is due the plan is %+v", plan)
	}
}

// A reservation takes several searches: what was put off for want of steps is repeated when the queue
// has its whole allowance again, and not each second with what a second gives.
func TestAReservationIsPutOffUntilTheAllowanceIsWhole(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Hour)
	putOffAlone := 0
	for steps := 1; steps < 40; steps++ { // without any that for the gang is put off, too
		s := putOff(now)["the reservation of a head"].of(t)
		admission.LeaveSteps(s, "h", steps, now)
		plan := admission.Decide(s, now)
		if s.Searched().Cut == 0 || s.Reason("w").Kind == workload.ReasonUnknown {
			continue
		}
		putOffAlone++
		if want := now.Add(4 * time.Second); plan.NextAt.Before(want) {
			t.Errorf("with %d steps left the next decision is at %s, want %s or later", steps, plan.NextAt, want)
		}
	}
	if putOffAlone == 0 {
		t.Error("no reservation is put off")
	}
}

// untilSettled returns what decisions do until none is due within some seconds.
func untilSettled(s *admission.State, now time.Time) (done []string) {
	for end := now.Add(15 * time.Second); !now.After(end); {
		plan := admission.Decide(s, now)
		for _, a := range plan.Asks {
			done = append(done, fmt.Sprintf("asks for %v for %s", a.Pods, a.Workload))
		}
		for _, a := range plan.Admissions {
			done = append(done, "starts "+string(a.Workload))
		}
		for _, e := range plan.Evictions {
			done = append(done, "evicts "+string(e.Workload))
		}
		if plan.NextAt.IsZero() {
			break
		}
		now = plan.NextAt
	}
	for _, r := range s.HeadReservations() {
		done = append(done, fmt.Sprintf("reserves for %s at %s", r.Workload, r.Start.Sub(start)))
	}
	return done
}

// A gang that may ask for nodes has none evicted while it is not known for how many, also when it is
// the queue of another gang that has no steps left.
func TestARequestThatIsPutOffEvictsNone(t *testing.T) {
	t.Parallel()
	c := askingConfig(100)
	other := c.ClusterQueues[0]
	other.Name = "other"
	c.ClusterQueues[0].Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	c.ClusterQueues = append(c.ClusterQueues, other)
	s := askingState(t, c, nodeOf("c", 64, 4))
	enqueueAsker(s, "x", 0, 0, setOf("workers", 1, 0, 4))
	wantPlan(t, decide(s), "admit x")
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "asks", Queue: "other", Priority: 1, PodSets: spreadOver(2)}})
	wantPlan(t, decide(s), "ask asks [{workers 2}]")
	now := start.Add(time.Minute)
	for _, name := range []string{"a", "b"} {
		n := nodeOf(name, 64, 4)
		n.Created = now
		s.SetNode(n)
	}
	enqueueAsker(s, "w", 2, 9, setOf("workers", 3, 0, 4))
	admission.LeaveSteps(s, "other", 0, now)
	admission.LeaveSteps(s, "queue", placement.Budget, now)
	plan := admission.Decide(s, now)
	wantPlan(t, plan, "")
	if why := s.Reason("w"); why == nil || why.Kind != workload.ReasonUnknown {
		t.Errorf("it waits for %+v, want its search", why)
	}
	if got := untilSettled(s, plan.NextAt); !slices.Equal(got, []string{"asks for [{workers 3}] for w"}) {
		t.Errorf("then it comes to %q", got)
	}
}
