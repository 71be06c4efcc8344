package follow_test

import (
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const (
		wait    = follow.OnTheWay
		reached = follow.Reached
		missed  = follow.Missed
		refused = follow.Rejected
	)
	// One column per goal but the first, which needs no event.
	want := map[workload.Phase][4]follow.Verdict{
		workload.Queued:     {reached, wait, wait, wait},
		workload.Admitted:   {reached, reached, wait, wait},
		workload.Dispatched: {reached, reached, wait, wait},
		workload.Running:    {reached, reached, reached, wait},
		workload.Evicting:   {reached, wait, wait, wait},
		workload.Cancelling: {reached, wait, wait, wait},
		workload.Succeeded:  {reached, reached, reached, reached},
		workload.Failed:     {reached, missed, missed, missed},
		workload.Cancelled:  {reached, missed, missed, missed},
		workload.Rejected:   {refused, refused, refused, refused},
	}
	for _, phase := range workload.Phases() {
		for i, goal := range follow.Goals()[1:] {
			if got := goal.Judge(phase); got != want[phase][i] {
				t.Errorf("waiting for %s, %s: verdict %d, want %d", goal, phase, got, want[phase][i])
			}
		}
	}
}

func TestParseGoal(t *testing.T) {
	t.Parallel()
	for _, goal := range follow.Goals() {
		if got, err := follow.ParseGoal(string(goal)); err != nil || got != goal {
			t.Errorf("ParseGoal(%q) = %q, %v", goal, got, err)
		}
	}
	if _, err := follow.ParseGoal("done"); err == nil {
		t.Error(`ParseGoal("done") succeeded`)
	}
}
