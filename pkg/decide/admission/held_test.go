package admission_test

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAHoldIsReportedToAllThatWait: workloads that wait when their queue is held get that reason,
// each of them, and another one when it is held no longer. A policy that changes nothing for
// them tells nothing.
func TestAHoldIsReportedToAllThatWait(t *testing.T) {
	t.Parallel()
	s := stateOf([]capacity.Node{nodeOf("one", 8, 1)}, []workload.PodSet{setOf("w", 2, 1, 1)}, []workload.PodSet{setOf("w", 2, 1, 1)})
	decide(s)
	config := func(stop string) quota.Config {
		return quota.Config{
			ClusterQueues: []quota.ClusterQueue{{Name: "queue", StopPolicy: stop}},
		}
	}
	for _, step := range []struct {
		stop     string
		reported int
		want     workload.ReasonKind
	}{
		{quota.StopNone, 0, ""}, {quota.Hold, 2, workload.ReasonHeld}, {quota.Hold, 0, ""}, {quota.StopNone, 2, ""},
	} {
		s.Reconfigure(treeOf(t, config(step.stop)))
		kinds := map[workload.ID]workload.ReasonKind{}
		for _, w := range decide(s).Waits {
			kinds[w.Workload] = w.Reason.Kind
		}
		for id, kind := range kinds {
			if held := kind == workload.ReasonHeld; held != (step.want == workload.ReasonHeld) {
				t.Errorf("with stop policy %q, %s has the reason %s", step.stop, id, kind)
			}
		}
		if step.reported > 0 && len(kinds) != step.reported {
			t.Errorf("with stop policy %q, %d workloads get a reason: %v; want %d", step.stop, len(kinds), kinds, step.reported)
		}
	}
}

// TestAHoldIsReportedInParts: the reasons of a long queue are spread over decisions, in the order
// of the queue, and each workload has it reported once.
func TestAHoldIsReportedInParts(t *testing.T) {
	t.Parallel()
	const waiting = 2500
	s := stateOf([]capacity.Node{nodeOf("one", 8, 1)}, slices.Repeat([][]workload.PodSet{{setOf("w", 2, 1, 1)}}, waiting)...)
	for decide(s); s.ReportsLeft(); decide(s) {
	}
	s.Reconfigure(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue", StopPolicy: quota.Hold}}}))
	reported, parts := map[workload.ID]int{}, []int{}
	for len(parts) == 0 || s.ReportsLeft() {
		waits := decide(s).Waits
		for _, w := range waits {
			reported[w.Workload]++
			if w.Reason.Kind != workload.ReasonHeld || reported[w.Workload] > 1 {
				t.Fatalf("%s has the reason %s reported %d times", w.Workload, w.Reason.Kind, reported[w.Workload])
			}
		}
		parts = append(parts, len(waits))
	}
	if len(reported) != waiting || !slices.Equal(parts, []int{1000, 1000, 500}) {
		t.Errorf("%d of %d workloads get a reason, in parts of %v", len(reported), waiting, parts)
	}
}
