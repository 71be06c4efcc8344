package forecast

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
)

// TestALateQueueIsKnownBeforeItsWorkloadsStart: an estimate takes into account how long workloads
// of its queue wait already, and no others.
func TestALateQueueIsKnownBeforeItsWorkloadsStart(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var s scores
	forecast := func(id workload.ID, queue string, now time.Time) time.Duration {
		var e workload.Estimate
		return s.quantiles(&workload.Record{Workload: workload.Workload{ID: id, Queue: queue}}, false, now, time.Hour, &e)[estimate.P90]
	}
	forecast("late", "a", made)
	forecast("new", "b", made.Add(3*time.Hour))
	s.wait(made.Add(4 * time.Hour))
	if a, b := forecast("next", "a", made.Add(4*time.Hour)), forecast("other", "b", made.Add(4*time.Hour)); a != 4*time.Hour || b != time.Hour {
		t.Errorf("the p90 is %s in the late queue and %s in the other; want 4h and 1h", a, b)
	}
}

// TestWhatIsHeldBackIsNoLateStart: a workload that is on hold, never fits or is not to be tried yet
// waits for what no estimate knows, so its wait makes no other estimate longer. Nor is it scored
// by the estimate from before.
func TestWhatIsHeldBackIsNoLateStart(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		hold *workload.Hold
		why  *workload.Reason
		p90  time.Duration
	}{
		"waits":             {nil, nil, 4 * time.Hour},
		"waits for quota":   {nil, &workload.Reason{Kind: workload.ReasonQuota}, 4 * time.Hour},
		"held":              {&workload.Hold{}, nil, time.Hour},
		"its queue is held": {nil, &workload.Reason{Kind: workload.ReasonHeld}, time.Hour},
		"never fits":        {nil, &workload.Reason{Kind: workload.ReasonNeverFits}, time.Hour},
		"tried again later": {nil, &workload.Reason{Kind: workload.ReasonBackoff}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scores
			forecast := func(id workload.ID, held bool, now time.Time) time.Duration {
				var e workload.Estimate
				return s.quantiles(&workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}}, held, now, time.Hour, &e)[estimate.P90]
			}
			forecast("first", false, made)
			later := made.Add(4 * time.Hour)
			r := workload.Record{Workload: workload.Workload{ID: "first", Queue: "q"}, Phase: workload.Queued, Hold: c.hold, Reason: c.why}
			s.settle([]state.StoredWorkload{{Record: r}}, nil, nil)
			forecast("first", heldBack(&r), later) // it is not opened again either
			s.wait(later)
			if got := forecast("next", false, later); got != c.p90 {
				t.Errorf("the p90 of the next one is %s, want %s", got, c.p90)
			}
			if _, open := s.open["first"]; open != (c.p90 != time.Hour) {
				t.Errorf("that it is to be scored is %t", open)
			}
		})
	}
}
