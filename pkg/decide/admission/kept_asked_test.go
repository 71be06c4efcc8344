package admission_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// keptConfig is a queue whose check asks for nodes, and "plain", which has none.
func keptConfig(managed ...resource.Name) quota.Config {
	c := askingConfig(100, managed...)
	plain := c.ClusterQueues[0]
	plain.Name, plain.AdmissionChecks = "plain", nil
	c.ClusterQueues = append(c.ClusterQueues, plain)
	return c
}

// enqueueAs has one worker of a GPU wait at a priority, in a queue without a check.
func enqueueAs(s *admission.State, id workload.ID, priority int32) {
	s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: id, Queue: "plain", Priority: priority, PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)}}})
}

// cameAt is a node with a GPU that was created so long after the start.
func cameAt(name string, after time.Duration) capacity.Node {
	n := nodeOf(name, 8, 1)
	n.Created = start.Add(after)
	return n
}

// askedForTwo is a state in which gang-0, of priority 1, has asked for two nodes.
func askedForTwo(t *testing.T) *admission.State {
	t.Helper()
	s := askingState(t, keptConfig(), nodeOf("cpu", 8, 0))
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang-0", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)}}})
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")
	return s
}

// Nodes come one after the other. No gang of the same priority or below takes one before the gang
// that has asked for them is admitted; one of a higher priority does.
func TestNodesThatComeForARequestAreKeptForItsGang(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	provisioned := func(s *admission.State) {
		s.Provisioned("gang-0", start.Add(minute))
		s.SetNode(nodeOf("first", 8, 1))
	}
	for name, test := range map[string]struct {
		comes    func(*admission.State)
		priority int32
		at       time.Duration
		want     string
	}{
		"the same priority":          {provisioned, 1, minute, ""},
		"a lower one":                {provisioned, 0, minute, ""},
		"a higher one":               {provisioned, 2, minute, "admit other"},
		"until the time is over":     {provisioned, 1, minute + admission.SettleProvisioned, "admit other"},
		"before the answer":          {func(s *admission.State) { s.SetNode(cameAt("first", minute)) }, 1, 2 * minute, ""},
		"not without end":            {func(s *admission.State) { s.SetNode(cameAt("first", minute)) }, 1, minute + admission.SettleProvisioned, "admit other"},
		"not what was there before":  {func(s *admission.State) { s.SetNode(cameAt("first", -minute)) }, 1, minute, "admit other"},
		"not while nothing has come": {func(s *admission.State) { s.SetNode(nodeOf("first", 8, 1)) }, 1, minute, "admit other"},
		"not what the gang cannot use": {func(s *admission.State) {
			provisioned(s)
			s.SetNode(nodeOf("second", 8, 1))
			s.SetNode(nodeOf("third", 8, 1))
		}, 1, minute, "admit gang-0, admit other"},
		"not when the gang has left":  {func(s *admission.State) { provisioned(s); s.Dequeue("gang-0") }, 1, minute, "admit other"},
		"the gang goes before it can": {func(s *admission.State) { provisioned(s); s.SetNode(nodeOf("second", 8, 1)) }, 1, minute, "admit gang-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askedForTwo(t)
			test.comes(s)
			enqueueAs(s, "other", test.priority)
			plan := admission.Decide(s, start.Add(test.at))
			wantPlan(t, plan, test.want)
			if test.want != "" {
				return
			}
			if why := s.Reason("other"); why.Kind != workload.ReasonBehindHead || !strings.Contains(why.Message, "only on places that are kept for a workload of another queue with priority 1") {
				t.Errorf("it waits for %+v", why)
			}
			end := start.Add(minute + admission.SettleProvisioned)
			if !plan.NextAt.Equal(end) {
				t.Errorf("the next decision is at %s, want %s", plan.NextAt, end)
			}
			wantPlan(t, admission.Decide(s, end), "admit other")
		})
	}
}

// A gang that waits for kept places starts as soon as they are used or free.
func TestWhatWasKeptIsFreeWhenTheGangStartsOrLeaves(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.Provisioned("gang-0", start)
	s.SetNode(nodeOf("first", 8, 1))
	enqueueAs(s, "other", 1)
	wantPlan(t, decide(s), "")
	s.SetNode(nodeOf("second", 8, 2)) // one place more than the gang needs
	wantPlan(t, decide(s), "admit gang-0, admit other")

	s = askedForTwo(t)
	s.Provisioned("gang-0", start)
	s.SetNode(nodeOf("first", 8, 1))
	enqueueAs(s, "other", 1)
	decide(s)
	s.Dequeue("gang-0")
	wantPlan(t, decide(s), "admit other")
}

// Two gangs whose nodes come have each their own, and one that takes none of these starts.
func TestWhatIsKeptIsNoMoreThanTheGangCanUse(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "gang-1", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 3, 1, 1)}}})
	wantPlan(t, decide(s), "ask gang-1 [{workers 3}]")
	s.SetNode(cameAt("first", time.Minute))
	s.SetNode(cameAt("second", time.Minute))
	s.SetNode(cameAt("third", time.Minute))
	enqueueAs(s, "other", 1)
	enqueue(s, 8, "queue", []workload.PodSet{setOf("workers", 1, 1, 0)})
	now := start.Add(time.Minute)
	wantPlan(t, admission.Decide(s, now), "admit gang-8")
	s.SetNode(cameAt("fourth", time.Minute))
	s.SetNode(cameAt("fifth", time.Minute))
	s.SetNode(cameAt("sixth", time.Minute))
	wantPlan(t, admission.Decide(s, now), "admit other")
}

// A node that is gone again keeps nothing: a leader that begins then knows nothing of it.
func TestANodeThatIsGoneKeepsNothing(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.SetNode(nodeOf("old", 8, 1))
	s.SetNode(cameAt("first", time.Minute))
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "first"})
	enqueueAs(s, "other", 1)
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "admit other")
}

// A gang that asks counts on no node that has come for another one.
func TestAGangAsksForItsNodesBesideThoseThatAreKept(t *testing.T) {
	t.Parallel()
	s := askedForTwo(t)
	s.SetNode(cameAt("first", time.Minute))
	s.SetNode(cameAt("second", time.Minute))
	s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{ID: "gang-1", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 3, 1, 1)}}})
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "ask gang-1 [{workers 3}]")
}

// No gang is evicted for one that then takes what is kept.
func TestEvictionsDoNotTakeWhatIsKept(t *testing.T) {
	t.Parallel()
	c := keptConfig()
	c.ClusterQueues[1].Preemption = &quota.Preemption{WithinClusterQueue: quota.LowerPriority}
	s := askingState(t, c, nodeOf("old", 8, 1))
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "victim", Queue: "plain", PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)}}})
	wantPlan(t, decide(s), "admit victim")
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang-0", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 3, 1, 1)}}})
	wantPlan(t, decide(s), "ask gang-0 [{workers 3}]")
	s.SetNode(cameAt("first", time.Minute))
	s.Enqueue(admission.Waiting{Order: 9, Workload: &workload.Workload{ID: "other", Queue: "plain", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)}}})
	plan := admission.Decide(s, start.Add(time.Minute))
	if len(plan.Evictions) > 0 || len(plan.Admissions) > 0 {
		t.Errorf("the plan is %q, want no eviction for a place that is kept", text(plan))
	}
}

// Nodes that are reserved for others are kept for no gang that may not use them.
func TestReservedNodesAreNotKept(t *testing.T) {
	t.Parallel()
	c := keptConfig()
	c.Reservations = []quota.Reservation{{
		Name: "demo", Nodes: []string{"first"}, From: start, Until: start.Add(time.Hour), Workload: "other", Since: start, By: "ann",
	}}
	s := askingState(t, c, nodeOf("cpu", 8, 0))
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang-0", Queue: "queue", Priority: 1, PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)}}})
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")
	s.SetNode(cameAt("first", time.Minute))
	enqueueAs(s, "other", 0)
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "admit other")
}
