package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// HeldNow returns, of each workload that holds places, the steps that led to what it holds now, as
// far as its record has them: its admission, the begin of its run, and another phase from now on,
// because when that began is not in a record.
func (s *State) HeldNow(now time.Time) (steps []HistoryRow) {
	for e := range s.live.All() {
		if !e.Holding {
			continue
		}
		step := HistoryRow{Workload: e.ID, At: e.Times.Admitted, Phase: workload.Admitted, Attempt: e.Attempt, Cluster: e.Cluster, Usage: &workload.UsageStep{
			Queue: e.Queue, Namespace: e.Namespace, Submitter: e.Submitter, Held: workload.HeldBy(e.PodSets, e.Flavors), Checkpoint: e.Saved().Last(e.Attempt),
		}}
		steps = append(steps, step)
		if !e.Times.Running.IsZero() {
			step.At, step.Phase = e.Times.Running, workload.Running
			steps = append(steps, step)
		}
		if e.Phase != workload.Admitted && e.Phase != workload.Dispatched && e.Phase != workload.Running {
			step.At, step.Phase = now, e.Phase
			steps = append(steps, step)
		}
	}
	return steps
}
