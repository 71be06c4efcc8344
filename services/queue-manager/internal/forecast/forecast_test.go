package forecast

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
)

// TestWhyThereIsNoEstimate: a workload that never fits, or is held, does not seem to start
// when others have ended.
func TestWhyThereIsNoEstimate(t *testing.T) {
	t.Parallel()
	endless := estimate.Forecast{Endless: []workload.ID{"a", "b"}}
	titles := map[workload.ID]string{"a": "n/a", "b": "n/b"}
	for name, c := range map[string]struct {
		reason *workload.Reason
		want   string
		behind []string
	}{
		"never fits": {
			&workload.Reason{Kind: workload.ReasonNeverFits, Message: "no node offers gpu; it waits until a node is added or changed. Now: 2 lack"},
			"it never fits: no node offers gpu", nil,
		},
		"held":      {&workload.Reason{Kind: workload.ReasonHeld, Message: "queue q is held by ops"}, "the queue is on hold: queue q is held by ops", nil},
		"waits":     {&workload.Reason{Kind: workload.ReasonFit, Message: "2 lack"}, "2 workloads hold places, and their ends are unknown", []string{"n/a", "n/b"}},
		"no reason": {nil, "2 workloads hold places, and their ends are unknown", []string{"n/a", "n/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if why, behind := unknown(c.reason, endless, titles); why != c.want || !slices.Equal(behind, c.behind) {
				t.Errorf("it says %q behind %q, want %q behind %q", why, behind, c.want, c.behind)
			}
		})
	}
}

// TestWhatWasCancelledIsNoRunTime: of what has ended, that which ran as long as it wanted
// counts.
func TestWhatWasCancelledIsNoRunTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase  workload.Phase
		kind   string
		reason workload.ReasonKind
		want   bool
	}{
		"a job that succeeded":         {workload.Succeeded, workload.KindRayJob, workload.ReasonJobEnded, true},
		"a job that failed":            {workload.Failed, workload.KindRayJob, workload.ReasonJobEnded, false},
		"a job that was cancelled":     {workload.Cancelled, workload.KindRayJob, workload.ReasonCancelled, false},
		"a cluster that was cancelled": {workload.Cancelled, workload.KindRayCluster, workload.ReasonCancelled, false},
		"a cluster that was deleted":   {workload.Cancelled, workload.KindRayCluster, workload.ReasonDeleted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &workload.Record{Phase: c.phase, Reason: &workload.Reason{Kind: c.reason}}
			r.Kind = c.kind
			if got := ranToItsEnd(r); got != c.want {
				t.Errorf("it counts: %v, want %v", got, c.want)
			}
		})
	}
}
