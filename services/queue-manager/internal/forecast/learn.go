package forecast

import (
	"context"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// learn takes in what has ended since the last time: of those that were live then, and of
// what was submitted since.
func (f *Forecaster) learn(ctx context.Context, live store.LiveState) ([]workload.Record, error) {
	now := make(map[workload.ID]bool, len(live.Workloads))
	for i := range live.Workloads {
		now[live.Workloads[i].ID] = true
	}
	var gone []workload.ID
	for id := range f.known {
		if !now[id] {
			gone = append(gone, id)
		}
	}
	ended, err := f.Store.Ended(ctx, gone, f.learned, live.LastOrder, mostEnded)
	if err != nil {
		return nil, err
	}
	f.known, f.learned = now, live.LastOrder
	f.learning.Lock()
	defer f.learning.Unlock()
	for i := range ended {
		r := &ended[i]
		if !r.Times.Admitted.IsZero() && ranToItsEnd(r) {
			f.history.Learn(&r.Workload, r.Times.Finished.Sub(r.Times.Admitted))
		}
	}
	return ended, nil
}

// ranToItsEnd reports whether a workload ran for as long as it wanted to: a job that
// succeeded, and a cluster whose object its owner deleted or that was idle. One that was
// cancelled shows nothing about how long another one runs.
func ranToItsEnd(r *workload.Record) bool {
	deleted := r.Phase == workload.Cancelled && r.Kind == workload.KindRayCluster &&
		(r.Reason == nil || r.Reason.Kind != workload.ReasonCancelled)
	return r.Phase == workload.Succeeded || deleted
}
