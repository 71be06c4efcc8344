package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Gangs that no node can serve back off for less than the turns of the others last. Each gang has
// its turn nevertheless: the one with the fewest failures is shown first.
func TestAFewGangsThatCannotBeServedStarveNoOther(t *testing.T) {
	t.Parallel()
	s := askingState(t, showingConfig(100), nodeOf("cpu", 8, 0))
	const gangs = 4
	now, failures := start, [gangs]int{}
	waiting := func(i int, notBefore time.Time) admission.Waiting {
		return admission.Waiting{Order: int64(i), Failures: failures[i], NotBefore: notBefore, Workload: &workload.Workload{
			ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "queue", PodSets: []workload.PodSet{setOf("workers", i%2+1, 1, 1)},
		}}
	}
	for i := range gangs {
		s.Enqueue(waiting(i, time.Time{}))
	}
	var turns []string
	for range 3 * gangs {
		plan := admission.Decide(s, now)
		if len(plan.Asks) != 1 {
			t.Fatalf("after %v the plan is %q, want one gang shown", turns, text(plan))
		}
		i := int(plan.Asks[0].Workload[len("gang-")] - '0')
		turns = append(turns, string(plan.Asks[0].Workload))
		now = now.Add(15 * time.Minute) // its turn
		failures[i]++
		s.Enqueue(waiting(i, now.Add(time.Minute)))
	}
	for i, n := range failures {
		if n != 3 {
			t.Errorf("gang-%d had %d turns of %v, want 3", i, n, turns)
		}
	}
}

// A gang that has failed is shown when those with fewer failures need no turn.
func TestAGangThatFailedIsShownWhenNoOtherNeedsTheTurn(t *testing.T) {
	t.Parallel()
	s := askingState(t, showingConfig(3), nodeOf("cpu", 8, 0))
	s.Enqueue(admission.Waiting{Failures: 2, Reported: true, Workload: &workload.Workload{
		ID: "gang-0", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)},
	}})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 4, 1, 1)}) // beyond quota
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 1, 1, 0)}) // it fits
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}], admit gang-2")
}

func showingClusters(t *testing.T, gpus int64, clusters ...string) *admission.State {
	t.Helper()
	s := askingState(t, showingConfig(gpus))
	for _, cluster := range clusters {
		n := nodeOf("cpu", 8, 0)
		n.Cluster = cluster
		s.SetNode(n)
	}
	return s
}

// What is kept for a gang in one cluster keeps no other gang from starting in another.
func TestAGangStartsWhereNoOtherIsShown(t *testing.T) {
	t.Parallel()
	s := showingClusters(t, 100, "a", "b")
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 3, 1, 1)})
	plan := decide(s)
	wantPlan(t, plan, "ask gang-0 [{workers 3}]")
	shownIn := plan.Asks[0].Cluster
	for _, cluster := range []string{"a", "b"} {
		n := nodeOf("gpu", 8, 2)
		if n.Cluster = cluster; cluster == shownIn {
			n = nodeOf("gpu", 8, 1) // the fuller one is tried first
			n.Cluster = cluster
		}
		s.SetNode(n)
	}
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	plan = decide(s)
	wantPlan(t, plan, "admit gang-1")
	if len(plan.Admissions) == 1 && plan.Admissions[0].Cluster == shownIn {
		t.Errorf("it is admitted in %s, where gang-0 is shown", shownIn)
	}
}

// The reason names few clusters, once.
func TestTheReasonOfAGangThatWaitsForItsTurnIsShort(t *testing.T) {
	t.Parallel()
	s := showingClusters(t, 100, "a", "b", "c", "d", "e")
	for i := range 6 {
		enqueue(s, i, "queue", []workload.PodSet{setOf("workers", 1+i, 1, 1)})
	}
	if plan := decide(s); len(plan.Asks) != 5 {
		t.Fatalf("the plan is %q, want a gang shown in each cluster", text(plan))
	}
	why := s.Reason("gang-5").Message
	if strings.Count(why, "placeholder pods") != 1 || !strings.Contains(why, "in one of the clusters a, b, c and 2 more") {
		t.Errorf("it waits for %q", why)
	}
}

// Where the charges of all that hold quota have grown beyond it, those last in line give way,
// and no others.
func TestTheLastInLineGivesWayWhereDefaultsGrow(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{Flavors: []quota.Flavor{{Name: "f"}}, ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", QuotaCheckStrategy: quota.IgnoreUndeclared,
		ResourceGroups: []quota.ResourceGroup{{CoveredResources: []resource.Name{"memory"}, Flavors: []quota.FlavorQuotas{{
			Name: "f", Resources: []quota.ResourceQuota{{Name: "memory", Nominal: 5 << 30}},
		}}}},
	}}}))
	addNode(s, "c", 64)
	s.SetNamespace("c", "limited", defaulting(2))
	for i, id := range []workload.ID{"first", "second"} {
		s.Enqueue(admission.Waiting{Workload: bare(id, "limited"), Order: int64(i), Asked: &admission.Asked{
			Cluster: "c", Flavors: []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"memory": "f"}}},
		}})
	}
	decide(s)
	if got := s.Quota().Queue("queue").Used()["memory"]; got != 4<<30 {
		t.Fatalf("both hold %d bytes, want 4 GiB", got)
	}
	s.SetNamespace("c", "limited", defaulting(4))
	plan := decide(s)
	if len(plan.Withdrawals) != 1 || plan.Withdrawals[0].Workload != "second" {
		t.Errorf("the withdrawals are %+v, want that of second alone", plan.Withdrawals)
	}
	if got := s.Quota().Queue("queue").Used()["memory"]; got != 4<<30 {
		t.Errorf("%d bytes are held, want the 4 GiB of first", got)
	}
}
