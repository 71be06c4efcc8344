package forecast

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
)

// TestALateQueueIsKnownBeforeItsWorkloadsStart: an estimate takes into account how long workloads
// of its queue wait already, and no others.
func TestALateQueueIsKnownBeforeItsWorkloadsStart(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var s scores
	told := func(id workload.ID, queue string, now time.Time) time.Duration {
		var e workload.Estimate
		return s.quantiles(&workload.Record{Workload: workload.Workload{ID: id, Queue: queue}}, now, time.Hour, &e)[estimate.P90]
	}
	told("late", "a", made)
	told("new", "b", made.Add(3*time.Hour))
	s.wait(made.Add(4 * time.Hour))
	if a, b := told("next", "a", made.Add(4*time.Hour)), told("other", "b", made.Add(4*time.Hour)); a != 4*time.Hour || b != time.Hour {
		t.Errorf("the p90 is %s in the late queue and %s in the other; want 4h and 1h", a, b)
	}
}
