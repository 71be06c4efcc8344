package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// enqueueAsker has a gang wait in the queue whose check asks for nodes.
func enqueueAsker(s *admission.State, id workload.ID, order int64, priority int32, sets ...workload.PodSet) {
	s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{ID: id, Queue: "queue", Priority: priority, PodSets: sets}})
}

// Of two gangs whose nodes come, the second does not take what is kept for the first, also when its
// own request is the one that is provisioned.
func TestAnAskerLeavesWhatIsKeptForTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	enqueueAsker(s, "gang-1", 1, 1, setOf("workers", 1, 1, 1))
	wantPlan(t, decide(s), "ask gang-1 [{workers 1}]")
	s.Provisioned("gang-1", start)
	s.SetNode(cameAt("first", time.Minute))
	plan := admission.Decide(s, start.Add(time.Minute))
	wantPlan(t, plan, "")
	if why := s.Reason("gang-1"); why.Kind != workload.ReasonProvisioning || !strings.Contains(why.Message, "its places are kept for workload") {
		t.Errorf("it waits for %+v", why)
	}
	end := start.Add(time.Minute + admission.SettleProvisioned)
	if !plan.NextAt.Equal(end) {
		t.Errorf("the next decision is at %s, want %s", plan.NextAt, end)
	}
	wantPlan(t, admission.Decide(s, end.Add(-time.Second)), "")
	wantPlan(t, admission.Decide(s, end), "admit gang-1")
}

// The first does not wait for what is kept for the second.
func TestAnAskerTakesWhatIsKeptForTheOneAfterIt(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	enqueueAsker(s, "gang-1", 1, 1, setOf("workers", 1, 1, 1))
	decide(s)
	s.Provisioned("gang-1", start.Add(time.Minute))
	s.SetNode(cameAt("first", time.Minute))
	s.SetNode(cameAt("second", time.Minute))
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "")
	s.Provisioned("gang-0", start.Add(-admission.SettleProvisioned)) // nothing is kept for it any more
	wantPlan(t, admission.Decide(s, start.Add(2*time.Minute)), "admit gang-0")
}

// A gang that others were evicted for, and whose places are gone, takes none that are kept.
func TestANominationTakesNothingThatIsKept(t *testing.T) {
	t.Parallel()
	c := keptConfig()
	c.ClusterQueues[1].Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	s := askingState(t, c, nodeOf("old", 8, 1))
	enqueueAs(s, "victim", 0)
	wantPlan(t, decide(s), "admit victim")
	enqueueAsker(s, "gang-0", 0, 1, setOf("workers", 2, 1, 1))
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")
	enqueueAs(s, "other", 1)
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "evict victim")
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "old"})
	s.SetNode(cameAt("first", time.Minute))
	s.Release("victim")
	wantPlan(t, admission.Decide(s, start.Add(2*time.Minute)), "")
	if why := s.Reason("other"); why == nil || why.Kind != workload.ReasonBehindHead {
		t.Errorf("it waits for %+v, want kept places", why)
	}
}

// While a request waits, only nodes that have come since are kept, and only for the pods that it is
// for.
func TestARequestKeepsNoPlaceThatWasThereBefore(t *testing.T) {
	t.Parallel()
	s := askingState(t, keptConfig("nvidia.com/gpu"), nodeOf("old", 8, 0))
	enqueueAsker(s, "gang-0", 0, 1, setOf("head", 8, 1, 0), setOf("workers", 1, 0, 1))
	wantPlan(t, decide(s), "ask gang-0 [{workers 1}]")
	for i := range 2 {
		n := cameAt(fmt.Sprintf("cpu-%d", i), time.Minute)
		n.Allocatable = nodeOf("", 2, 0).Allocatable
		s.SetNode(n)
	}
	s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "other", Queue: "plain", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 8, 1, 0)}}})
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "admit other")
}

// Nodes that come one after the other keep none of them without end.
func TestANodeIsKeptForSomeMinutesOnly(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	s := askingState(t, keptConfig(), nodeOf("cpu", 8, 0))
	enqueueAsker(s, "gang-0", 0, 1, setOf("workers", 20, 1, 1))
	wantPlan(t, decide(s), "ask gang-0 [{workers 20}]")
	enqueueAs(s, "other", 1)
	wantPlan(t, decide(s), "")
	var plan admission.Plan
	for at := 4 * minute; at <= 12*minute; at += 4 * minute {
		s.SetNode(cameAt(at.String(), at))
		plan = admission.Decide(s, start.Add(at))
		wantPlan(t, plan, "")
	}
	end := start.Add(4*minute + 2*admission.SettleProvisioned)
	if !plan.NextAt.Equal(end) {
		t.Errorf("the next decision is at %s, want %s", plan.NextAt, end)
	}
	wantPlan(t, admission.Decide(s, end), "admit other")
	enqueueAs(s, "next", 1) // the other nodes are younger
	wantPlan(t, admission.Decide(s, end), "")
}

// A node that is created later than now, by the clock of its API server, counts from then on.
func TestANodeFromTheFutureIsNotKept(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.SetNode(cameAt("first", time.Hour))
	enqueueAs(s, "other", 1)
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "admit other")
	s.Release("other")
	enqueueAs(s, "next", 1)
	wantPlan(t, admission.Decide(s, start.Add(time.Hour)), "")
}

// A gang that may ask, and whose only places are kept, asks for its own.
func TestAGangAsksWhereAllPlacesAreKept(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.SetNode(cameAt("first", time.Minute))
	enqueueAsker(s, "other", 9, 1, setOf("workers", 1, 1, 1))
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "ask other [{workers 1}]")
}

// What is kept is not found again for each gang that starts.
func TestWhatIsKeptIsFoundOnce(t *testing.T) {
	t.Parallel()
	const gangs = 50
	s := askingState(t, keptConfig(), nodeOf("cpu", 8, 0))
	enqueueAsker(s, "gang-0", 0, 1, setOf("workers", 99, 1, 1))
	decide(s)
	young := cameAt("first", time.Minute)
	young.Allocatable = nodeOf("", 80, gangs+2).Allocatable
	s.SetNode(young)
	for i := range gangs {
		enqueueAs(s, workload.ID(fmt.Sprintf("high-%d", i)), 2)
	}
	enqueueAs(s, "low", 0)
	plan, searches := admission.KeptSearches(s, start.Add(time.Minute))
	if len(plan.Admissions) != gangs || searches != 1 {
		t.Errorf("%d gangs start, and what is kept is looked for %d times; want %d and once", len(plan.Admissions), searches, gangs)
	}
}

// The nodes that are looked at for what is kept count as steps of search of the gang that has asked.
func TestWhatIsKeptCostsSteps(t *testing.T) {
	t.Parallel()
	const nodes = 40
	s := askedForTwo(t)
	for i := range nodes {
		came := nodeOf(fmt.Sprintf("came-%d", i), 8, 0) // of no use for it
		came.Created = start.Add(time.Minute)
		s.SetNode(came)
	}
	enqueueAs(s, "other", 1)
	before := s.Searched().Steps
	_, searches := admission.KeptSearches(s, start.Add(time.Minute))
	if steps := s.Searched().Steps - before; searches != 1 || steps < nodes {
		t.Errorf("what is kept is looked for %d times in %d steps; want once, and at least %d", searches, steps, nodes)
	}
}

// When many gangs start on their nodes, what is kept for the others is found again some times only,
// and all of them start.
func TestWhatIsKeptIsFoundAgainSomeTimesOnly(t *testing.T) {
	t.Parallel()
	const gangs = 30
	s := askingState(t, keptConfig(), nodeOf("cpu", 8, 0))
	for i := range gangs {
		enqueueAsker(s, workload.ID(fmt.Sprintf("gang-%d", i)), int64(i), 1, setOf("workers", 1, 1, 1))
	}
	if plan := decide(s); len(plan.Asks) != gangs {
		t.Fatalf("%d gangs ask, want %d", len(plan.Asks), gangs)
	}
	young := cameAt("first", time.Minute)
	young.Allocatable = nodeOf("", 80, gangs).Allocatable
	s.SetNode(young)
	for i := range gangs {
		s.Provisioned(workload.ID(fmt.Sprintf("gang-%d", i)), start.Add(time.Minute))
	}
	plan, searches := admission.KeptSearches(s, start.Add(time.Minute))
	if len(plan.Admissions) != gangs || searches > 16 {
		t.Errorf("%d gangs start, and what is kept is looked for %d times; want %d and at most 16 times", len(plan.Admissions), searches, gangs)
	}
}

// What is kept in one cluster changes nothing for a gang that is not to start there.
func TestWhatIsKeptElsewhereDoesNotChangeTheCluster(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept %t", kept), func(t *testing.T) {
			t.Parallel()
			s := askingState(t, keptConfig(), nodeIn("c", "cpu", 0))
			enqueueAsker(s, "gang-0", 0, 1, setOf("workers", 2, 1, 5))
			wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")
			s.SetNode(nodeIn("a", "four", 4))
			s.SetNode(nodeIn("b", "one", 1))
			s.SetNode(nodeIn("b", "three", 3))
			young := nodeIn("c", "five", 5)
			if kept {
				young.Created = start.Add(time.Minute)
			}
			s.SetNode(young)
			s.Enqueue(admission.Waiting{Order: 10, Workload: &workload.Workload{ID: "big", Queue: "plain", PodSets: []workload.PodSet{setOf("workers", 30, 1, 4)}}})
			enqueueAs(s, "other", 1)
			plan := admission.Decide(s, start.Add(time.Minute))
			if len(plan.Admissions) != 1 || plan.Admissions[0].Cluster != "b" {
				t.Errorf("the admissions are %+v, want one in b, where no larger place is broken up", plan.Admissions)
			}
		})
	}
}
