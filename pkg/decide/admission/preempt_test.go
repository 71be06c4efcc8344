package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// gpuPolicy is a policy with the given queues, each with fields of its own and a
// nominal quota of GPUs (less than zero: none), in one cohort.
func gpuPolicy(t testing.TB, fair bool, queues ...string) quota.Config {
	t.Helper()
	text := fmt.Sprintf(`{"resourceFlavors": [{"name": "default"}], "fairSharing": {"enable": %t}, "clusterQueues": [%s]}`, fair, strings.Join(queues, ","))
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func gpuQueue(name string, nominal int, preemption string) string {
	groups := ""
	if nominal >= 0 {
		groups = fmt.Sprintf(`, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [
			{"name": "default", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}]}]`, nominal)
	}
	return fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared"%s, "preemption": {%s}}`, name, groups, preemption)
}

// play enters gangs that run, then one that waits, decides and tells the outcome:
// "starts", "evicts a b", or the kind of the reason. A gang is written as
// "name queue priority gpus", one pod for each GPU; the running have been
// admitted a minute apart, the first one the longest ago.
func play(t *testing.T, c quota.Config, nodes []capacity.Node, running []string, waiting string) string {
	t.Helper()
	s := admission.NewState(treeOf(t, c))
	for _, n := range nodes {
		s.SetNode(n)
	}
	for i, text := range running {
		enter(t, s, i, text)
		at := start.Add(time.Duration(i-len(running)) * time.Minute)
		if plan := admission.Decide(s, at); len(plan.Admissions) != 1 || len(plan.Evictions) != 0 {
			t.Fatalf("%s does not simply start: %+v", text, plan)
		}
	}
	w := enter(t, s, len(running), waiting)
	plan := admission.Decide(s, start)
	return answerTo(t, s, w, plan)
}

func enter(t *testing.T, s *admission.State, order int, text string) workload.ID {
	t.Helper()
	w := &workload.Workload{}
	gpus := 0
	if _, err := fmt.Sscan(text, &w.ID, &w.Queue, &w.Priority, &gpus); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	w.PodSets = []workload.PodSet{setOf("workers", gpus, 0, 1)}
	s.Enqueue(admission.Waiting{Workload: w, Order: int64(order)})
	return w.ID
}

func answerTo(t *testing.T, s *admission.State, id workload.ID, plan admission.Plan) string {
	t.Helper()
	for _, a := range plan.Admissions {
		if a.Workload == id {
			return "starts"
		}
	}
	if why := s.Reason(id); why.Kind != workload.ReasonWaitingForEviction {
		if len(plan.Evictions) > 0 {
			t.Errorf("%+v are evicted for nothing", plan.Evictions)
		}
		return string(why.Kind)
	}
	text := "evicts"
	for _, v := range plan.Evictions {
		text += " " + string(v.Workload)
	}
	return text
}

// The rules are those of Kueue's pages "Preemption" and "Fair Sharing".
func TestVictimsOfEachPreemptor(t *testing.T) {
	t.Parallel()
	const (
		lower   = `"withinClusterQueue": "LowerPriority"`
		newer   = `"withinClusterQueue": "LowerOrNewerEqualPriority"`
		reclaim = `"reclaimWithinCohort": "Any"`
		polite  = `"reclaimWithinCohort": "LowerPriority"`
		borrow  = `"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 5}`
	)
	cases := []struct {
		name    string
		fair    bool
		queues  []string
		gpus    int64 // of the one node
		running []string
		waiting string
		want    string
	}{
		{"there is room", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 0 4"}, "w a 9 4", "starts"},
		{"nobody is evicted by default", false, []string{gpuQueue("a", 8, "")}, 8, []string{"x a 0 8"}, "w a 9 4", "Quota"},
		{"the lower priority within the queue", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 5 4", "y a 0 4"}, "w a 9 4", "evicts y"},
		{"not the same priority", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 9 8"}, "w a 9 4", "Quota"},
		{"the newest of several that would do: it loses the least work", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 0 4", "y a 0 4"}, "w a 9 4", "evicts y"},
		{"several small that lose less than one large", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 0 4", "p a 0 1", "q a 0 1", "r a 0 2"}, "w a 9 4", "evicts r q p"},
		{"one large that loses less than several small", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"p a 0 1", "q a 0 1", "r a 0 2", "x a 0 4"}, "w a 9 4", "evicts x"},
		{"several of low priority rather than one of high", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"p a 0 2", "q a 0 2", "x a 8 4"}, "w a 9 4", "evicts q p"},
		{"of the lower priorities the lowest beside one of high", false, []string{gpuQueue("a", 9, lower)}, 9, []string{"x a 8 5", "p a 0 1", "q a 0 1", "y a 5 2"}, "w a 9 7", "evicts q p x"},
		{"not more than it takes", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"p a 0 3", "q a 0 2", "r a 0 3"}, "w a 9 5", "evicts r q"},
		{"nodes are freed as well as quota", false, []string{gpuQueue("a", -1, lower)}, 8, []string{"x a 0 8"}, "w a 9 4", "evicts x"},
		{"nobody, if all of them would not be enough", false, []string{gpuQueue("a", 8, lower)}, 8, []string{"x a 9 4", "y a 0 4"}, "w a 9 5", "Quota"},
		{"within the minimum run time nobody", false, []string{gpuQueue("a", 8, lower+`, "minRunSeconds": 120`)}, 8, []string{"y a 0 8"}, "w a 9 4", "Quota"},
		{
			"what the cohort has lent is taken back", false, []string{gpuQueue("a", 4, reclaim), gpuQueue("b", 4, "")}, 8,
			[]string{"x b 9 4", "y b 9 4"}, "w a 0 4", "evicts y",
		},
		{
			"but not what is within the other's quota", false, []string{gpuQueue("a", 4, reclaim), gpuQueue("b", 4, "")}, 8,
			[]string{"x b 0 4", "y a 0 4"}, "w a 9 4", "Quota",
		},
		{
			"nor to borrow oneself", false, []string{gpuQueue("a", 4, reclaim), gpuQueue("b", 4, "")}, 8,
			[]string{"x b 0 4", "y b 0 2", "z a 0 2"}, "w a 9 4", "Quota",
		},
		{
			"reclaim of lower priority only", false, []string{gpuQueue("a", 4, polite), gpuQueue("b", 4, "")}, 8,
			[]string{"x b 9 8"}, "w a 0 4", "Quota",
		},
		{
			"while borrowing, those up to the threshold", false, []string{gpuQueue("a", 4, borrow), gpuQueue("b", 0, ""), gpuQueue("c", 4, "")}, 8,
			[]string{"x b 0 2", "y b 5 2", "z a 9 4"}, "w a 9 2", "evicts x",
		},
		{
			"while borrowing, not those above it", false, []string{gpuQueue("a", 4, borrow), gpuQueue("b", 0, ""), gpuQueue("c", 4, "")}, 8,
			[]string{"x b 6 4", "z a 9 4"}, "w a 9 2", "Quota",
		},
		{
			"equal priority: the newer submission goes", false, []string{gpuQueue("a", 8, newer)}, 8,
			[]string{"x a 0 8"}, "w a 0 8", "Quota",
		},
		{
			"fair sharing: from the larger share", true, []string{gpuQueue("a", 0, reclaim), gpuQueue("b", 0, ""), gpuQueue("c", 8, "")}, 8,
			[]string{"x b 0 4", "y b 0 4"}, "w a 0 4", "evicts y",
		},
		{
			"fair sharing: not if that only turns it around", true, []string{gpuQueue("a", 0, reclaim), gpuQueue("b", 0, ""), gpuQueue("c", 8, "")}, 8,
			[]string{"x b 0 4", "y a 0 4"}, "w a 0 4", "Quota",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := play(t, gpuPolicy(t, c.fair, c.queues...), []capacity.Node{nodeOf("n", 64, c.gpus)}, c.running, c.waiting); got != c.want {
				t.Errorf("it %s, want %s", got, c.want)
			}
		})
	}
}

// What victims free belongs to the preemptor: a gang that is submitted meanwhile,
// of whatever priority, does not get it.
func TestWhatIsFreedIsHeldForThePreemptor(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`), gpuQueue("b", -1, ""))))
	s.SetNode(nodeOf("one", 8, 4))
	s.SetNode(nodeOf("two", 8, 4))
	for i, text := range []string{"x a 0 4", "y a 0 4"} {
		enter(t, s, i, text)
	}
	admission.Decide(s, start)
	now := start.Add(time.Minute)
	enter(t, s, 2, "w a 5 8")
	if got := answerTo(t, s, "w", admission.Decide(s, now)); got != "evicts y x" && got != "evicts x y" {
		t.Fatalf("it %s", got)
	}
	s.Release("x")
	enter(t, s, 3, "thief b 9 1")
	if plan := admission.Decide(s, now); len(plan.Admissions)+len(plan.Evictions) != 0 {
		t.Fatalf("when one victim is gone the plan is %+v, want nothing", plan)
	}
	s.Release("y")
	if plan := admission.Decide(s, now); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "w" {
		t.Fatalf("when both are gone the plan is %+v, want w admitted", plan)
	}
	s.Leave("w")
	s.Release("w")
	if plan := admission.Decide(s, now); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "thief" {
		t.Fatalf("at the end the plan is %+v, want the thief admitted", plan)
	}
}

// The places of a cancelled preemptor are free for others.
func TestACancelledPreemptorHoldsNothing(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority"`))))
	s.SetNode(nodeOf("one", 8, 4))
	enter(t, s, 0, "x a 0 4")
	admission.Decide(s, start)
	enter(t, s, 1, "w a 5 4")
	now := start.Add(time.Minute)
	if got := answerTo(t, s, "w", admission.Decide(s, now)); got != "evicts x" {
		t.Fatalf("it %s", got)
	}
	enter(t, s, 2, "other a 1 4")
	admission.Decide(s, now)
	s.Dequeue("w")
	s.Release("x")
	if plan := admission.Decide(s, now); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "other" {
		t.Fatalf("the plan is %+v, want the other admitted", plan)
	}
}

// A new leader has no nominations. It finds them again without new victims, and the first
// gang of the queue does not get what the victims free.
func TestANominationSurvivesANewTerm(t *testing.T) {
	t.Parallel()
	c := gpuPolicy(t, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`), gpuQueue("b", -1, ""))
	s := admission.NewState(treeOf(t, c))
	s.SetNode(nodeOf("one", 8, 4))
	s.SetNode(nodeOf("two", 8, 4))
	w := func(name, queue string, priority int32, gpus int) *workload.Workload {
		return &workload.Workload{ID: workload.ID(name), Queue: queue, Priority: priority, PodSets: []workload.PodSet{setOf("workers", gpus, 0, 1)}}
	}
	// x on node one is going, node two is free.
	s.Start(admission.Started{
		Workload: w("x", "a", 0, 4), Order: 0, Cluster: "c", Terminating: true, Admitted: start,
		Placements: []workload.Placement{{PodSet: "workers", Node: "one", Pods: 4}},
	})
	s.Enqueue(admission.Waiting{Workload: w("thief", "b", 9, 4), Order: 1})
	s.Enqueue(admission.Waiting{Workload: w("w", "a", 5, 8), Order: 2, Nominated: true})
	plan := admission.Decide(s, start.Add(time.Minute))
	if len(plan.Admissions)+len(plan.Evictions) != 0 || s.Reason("w").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("the plan is %+v and w waits because of %+v", plan, s.Reason("w"))
	}
	s.Release("x")
	if plan := admission.Decide(s, start.Add(time.Minute)); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "w" {
		t.Fatalf("when the victim is gone the plan is %+v", plan)
	}
}

func TestHeldAndDrainedQueues(t *testing.T) {
	t.Parallel()
	held := func(policy string) quota.Config {
		return quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "a", StopPolicy: policy}}}
	}
	for _, policy := range []string{quota.Hold, quota.HoldAndDrain} {
		t.Run(policy, func(t *testing.T) {
			s := admission.NewState(treeOf(t, held(policy)))
			s.SetNode(nodeOf("one", 8, 4))
			s.Start(admission.Started{
				Workload: &workload.Workload{ID: "x", Queue: "a", PodSets: []workload.PodSet{setOf("workers", 1, 0, 1)}}, Cluster: "c",
				Placements: []workload.Placement{{PodSet: "workers", Node: "one", Pods: 1}}, Admitted: start,
			})
			enter(t, s, 1, "w a 0 1")
			plan := admission.Decide(s, start)
			if len(plan.Admissions) != 0 || s.Reason("w").Kind != workload.ReasonHeld {
				t.Errorf("%s: the plan is %+v, w waits because of %+v", policy, plan, s.Reason("w"))
			}
			if drained := len(plan.Evictions) == 1 && plan.Evictions[0].Reason.Kind == workload.ReasonDrained; drained != (policy == quota.HoldAndDrain) {
				t.Errorf("%s: evictions are %+v", policy, plan.Evictions)
			}
		})
	}
}

// Who waits for gangs to be evicted for it is not admitted either once its queue is
// held, and stands in line again when it is not.
func TestAHeldQueueAdmitsNoNominatedGang(t *testing.T) {
	t.Parallel()
	policy := func(stop string) quota.Config {
		return gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority"}, "stopPolicy": "`+stop+`", "flavorFungibility": {`))
	}
	s := admission.NewState(treeOf(t, policy(quota.StopNone)))
	s.SetNode(nodeOf("one", 8, 4))
	enter(t, s, 0, "x a 0 4")
	admission.Decide(s, start.Add(-time.Minute))
	enter(t, s, 1, "w a 5 4")
	if plan := admission.Decide(s, start); len(plan.Evictions) != 1 || s.Reason("w").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("the plan is %+v and w waits because of %+v", plan, s.Reason("w"))
	}
	s.Reconfigure(treeOf(t, policy(quota.Hold)))
	s.Leave("x")
	s.Release("x")
	if plan := admission.Decide(s, start.Add(time.Second)); len(plan.Admissions) != 0 || len(plan.Waits) != 1 || plan.Waits[0].Reason.Kind != workload.ReasonHeld {
		t.Errorf("while the queue is held the plan is %+v, w waits because of %+v", plan, s.Reason("w"))
	}
	s.Reconfigure(treeOf(t, policy(quota.StopNone)))
	if plan := admission.Decide(s, start.Add(2*time.Second)); len(plan.Admissions) != 1 {
		t.Errorf("after that the plan is %+v, w waits because of %+v", plan, s.Reason("w"))
	}
}

func TestABackoffIsATime(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeOf("one", 8, 4))
	at := start.Add(time.Minute)
	s.Enqueue(admission.Waiting{NotBefore: at, Workload: &workload.Workload{ID: "w", Queue: "a", PodSets: []workload.PodSet{setOf("workers", 1, 0, 1)}}})
	plan := admission.Decide(s, start)
	if len(plan.Admissions) != 0 || !plan.NextAt.Equal(at) || s.Reason("w").Kind != workload.ReasonBackoff {
		t.Errorf("the plan is %+v, w waits because of %+v", plan, s.Reason("w"))
	}
	if s.Pending(start.Add(time.Second)) || !s.Pending(at) {
		t.Error("the next decision is not due when the back-off ends")
	}
	if plan := admission.Decide(s, at); len(plan.Admissions) != 1 {
		t.Errorf("at that time the plan is %+v", plan)
	}
}

// The protection by a minimum run time ends at a time that Decide names.
func TestProtectionEndsAtATime(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, `"withinClusterQueue": "LowerPriority", "minRunSeconds": 120`))))
	s.SetNode(nodeOf("one", 8, 4))
	enter(t, s, 0, "x a 0 4")
	admission.Decide(s, start)
	enter(t, s, 1, "w a 5 4")
	plan := admission.Decide(s, start.Add(time.Minute))
	if want := start.Add(2 * time.Minute); len(plan.Evictions) != 0 || !plan.NextAt.Equal(want) || !s.Pending(want) {
		t.Errorf("the plan is %+v, want nothing before %s", plan, want)
	}
	if plan := admission.Decide(s, start.Add(2*time.Minute)); len(plan.Evictions) != 1 {
		t.Errorf("after the minimum run time the plan is %+v", plan)
	}
}

// Who does not have to borrow comes before who has to, whatever the priority; and
// under fair sharing queues get their shares by weight.
func TestOrderAcrossQueues(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 1, ""), gpuQueue("b", 3, ""))))
	s.SetNode(nodeOf("one", 8, 8))
	enter(t, s, 0, "borrower a 9 2")
	enter(t, s, 1, "owner b 0 3")
	if plan := admission.Decide(s, start); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "owner" {
		t.Errorf("the plan is %+v, want the owner admitted", plan.Admissions)
	}

	fair := gpuPolicy(t, true, gpuQueue("a", 0, ""), gpuQueue("b", 0, ""), gpuQueue("c", 9, ""))
	fair.ClusterQueues[1].FairSharing = &quota.FairSharing{WeightMilli: 2000}
	s = admission.NewState(treeOf(t, fair))
	s.SetNode(nodeOf("one", 64, 9))
	for i := range 9 {
		enter(t, s, i, fmt.Sprintf("a%d a 5 1", i))
		enter(t, s, 100+i, fmt.Sprintf("b%d b 0 1", i))
	}
	got := map[byte]int{}
	for _, a := range admission.Decide(s, start).Admissions {
		got[a.Workload[0]]++
	}
	if got['a'] != 3 || got['b'] != 6 {
		t.Errorf("queues of weight 1 and 2 got %d and %d of 9 GPUs, want 3 and 6", got['a'], got['b'])
	}
}
