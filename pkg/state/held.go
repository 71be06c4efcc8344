package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// HeldNow returns, of each workload that holds places, the steps that led to what it holds now, as
// far as its record has them: its admission, the beginning of its run, and another phase from now on,
// because when that began is not in a record.
func (s *State) HeldNow(now time.Time) (steps []HistoryRow) {
	for e := range s.live.All() {
		if !e.Holding {
			continue
		}
		row := func(at time.Time, phase workload.Phase) HistoryRow {
			return HistoryRow{Workload: e.ID, At: at, Phase: phase, Attempt: e.Attempt, Cluster: e.Cluster, Usage: &workload.UsageStep{
				Queue: e.Queue, Namespace: e.Namespace, Submitter: e.Submitter, Held: workload.HeldBy(e.PodSets, e.Flavors), Checkpoint: e.Saved().Last(e.Attempt),
			}}
		}
		steps = append(steps, row(e.Times.Admitted, workload.Admitted))
		if !e.Times.Running.IsZero() {
			steps = append(steps, row(e.Times.Running, workload.Running))
		}
		if e.Phase != workload.Admitted && e.Phase != workload.Dispatched && e.Phase != workload.Running {
			steps = append(steps, row(now, e.Phase))
		}
	}
	return steps
}
