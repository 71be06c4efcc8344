package admission_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// twoFlavors has queue a, whose first flavor its own gang x and the more important gang z of queue b
// have, and whose second one gang y of queue b borrows.
func twoFlavors(t *testing.T, whenCanPreempt string) *admission.State {
	t.Helper()
	flavor := func(name string, nominal int) string {
		return fmt.Sprintf(`{"name": %q, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": %d}]}`, name, nominal)
	}
	queue := func(name string, flavors, more string) string {
		return fmt.Sprintf(`{"name": %q, "cohortName": "all", "quotaCheckStrategy": "IgnoreUndeclared",
			"resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [%s]}]%s}`, name, flavors, more)
	}
	text := fmt.Sprintf(`{"resourceFlavors": [{"name": "first"}, {"name": "second"}], "clusterQueues": [%s, %s]}`,
		queue("a", flavor("first", 8)+","+flavor("second", 4), fmt.Sprintf(`, "flavorFungibility": {"whenCanPreempt": %q, "whenCanBorrow": "TryNextFlavor"},
			"preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "LowerPriority"}`, whenCanPreempt)),
		queue("b", flavor("first", 0)+","+flavor("second", 0), ""))
	var c quota.Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	s := admission.NewState(treeOf(t, c))
	s.SetNode(nodeOf("n", 64, 12))
	for i, text := range []string{"x a 0 4", "z b 10 4", "y b 0 4"} {
		enter(t, s, i, text)
		if plan := admission.Decide(s, start); len(plan.Admissions) != 1 {
			t.Fatalf("%s does not start: %+v", text, plan)
		}
	}
	return s
}

// As in Kueue, a gang goes to the flavor that another queue has borrowed before it evicts one of
// its own queue. That the search in the later flavor is put off does not mean that it finds none.
func TestAnUndecidedFlavorEvictsNoneOfTheOwnQueue(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]workload.PodSet{
		"with all pods":     setOf("workers", 4, 0, 1),
		"with fewer of its": rangeOf(4, 12, 0, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := twoFlavors(t, "TryNextFlavor")
			s.Enqueue(admission.Waiting{Order: 3, Workload: &workload.Workload{ID: "w", Queue: "a", Priority: 9, PodSets: []workload.PodSet{set}}})
			now := start.Add(time.Minute)
			admission.LeaveSteps(s, "a", 1, now) // for one search for victims
			if got := answerTo(t, s, "w", admission.Decide(s, now)); got == "evicts x" || got == "starts" {
				t.Errorf("while the search in the second flavor is put off it %s", got)
			}
			now = now.Add(time.Minute)
			if !s.Pending(now) {
				t.Error("the search is not due a minute later")
			}
			if got := answerTo(t, s, "w", admission.Decide(s, now)); got != "evicts y" {
				t.Errorf("when it may be searched again it %s, want evicts y", got)
			}
		})
	}
}

// Where the order of the flavors depends on what is evicted in them, the searches that tell the order
// are not made again for the evictions: steps for them are enough, about 30 and 20.
func TestVictimsThatTellTheOrderAreSearchedForOnce(t *testing.T) {
	t.Parallel()
	now := start.Add(time.Minute)
	decideWith := func(leave func(s *admission.State)) string {
		s := twoFlavors(t, "MayStopSearch")
		s.Enqueue(admission.Waiting{Order: 3, Workload: &workload.Workload{ID: "w", Queue: "a", Priority: 9, PodSets: []workload.PodSet{setOf("workers", 4, 0, 1)}}})
		leave(s)
		return answerTo(t, s, "w", admission.Decide(s, now))
	}
	want := decideWith(func(*admission.State) {})
	if want != "evicts x" && want != "evicts y" {
		t.Fatalf("with the whole allowance it %s", want)
	}
	if got := decideWith(func(s *admission.State) { admission.LeaveSteps(s, "a", 50, now) }); got != want {
		t.Errorf("with steps for the two searches it %s, want %s", got, want)
	}
}
