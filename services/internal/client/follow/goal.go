package follow

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/workload"
)

// Goal is the phase to wait for.
type Goal string

// The goals, in the order of life.
const (
	Submitted Goal = "submitted" // the message is stored; not reconciled yet
	Queued    Goal = "queued"    // accepted and stored for good
	Admitted  Goal = "admitted"  // a node is reserved for each pod
	Running   Goal = "running"   // all pods are ready
	Finished  Goal = "finished"  // the end
)

// Goals lists all goals.
func Goals() []Goal { return []Goal{Submitted, Queued, Admitted, Running, Finished} }

// ParseGoal reads the name of a goal.
func ParseGoal(name string) (Goal, error) {
	if goal := Goal(name); slices.Contains(Goals(), goal) {
		return goal, nil
	}
	var names []string
	for _, goal := range Goals() {
		names = append(names, string(goal))
	}
	return "", fmt.Errorf("cannot wait for %q: want %s", name, strings.Join(names, ", "))
}

// Verdict is where a workload is with regard to a goal.
type Verdict int

// The verdicts.
const (
	OnTheWay Verdict = iota
	Reached
	Missed   // it ended otherwise
	Rejected // it was never accepted
)

// Judge reports whether a workload in the phase has reached the goal. A job that
// succeeded has been running, whether or not that was seen.
func (g Goal) Judge(phase workload.Phase) Verdict {
	switch {
	case phase == workload.Rejected:
		return Rejected
	case phase == workload.Succeeded:
		return Reached
	case phase == workload.Failed, phase == workload.Cancelled:
		if g == Queued || g == Submitted {
			return Reached
		}
		return Missed
	}
	if slices.Contains(g.reachedIn(), phase) {
		return Reached
	}
	return OnTheWay
}

// reachedIn lists the phases short of the end in which the goal is reached.
func (g Goal) reachedIn() []workload.Phase {
	switch g {
	case Submitted, Queued:
		return []workload.Phase{
			workload.Queued, workload.Admitted, workload.Dispatched, workload.Running,
			workload.Evicting, workload.Cancelling,
		}
	case Admitted:
		return []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running}
	case Running:
		return []workload.Phase{workload.Running}
	}
	return nil
}
