package reconcile

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// NewSteps returns a reconciler that is driven by hand, look by look: it starts no
// goroutine, writes one thing at a time, and has its schedule and clock from the
// caller. It is for a simulation.
func NewSteps(cluster Cluster, report Reporter, reported map[workload.ID]event.GangStatus, logger *zap.Logger, metrics *Metrics,
	schedule Schedule, now func() time.Time,
) *Reconciler {
	r := newReconciler(cluster, report, reported, logger, metrics)
	r.queue, r.lanes, r.now, r.atOnce = schedule, newLanes(), now, 1
	return r
}

// Next looks at the workload that the schedule has next; it must have one.
func (r *Reconciler) Next(ctx context.Context) { r.next(ctx) }
