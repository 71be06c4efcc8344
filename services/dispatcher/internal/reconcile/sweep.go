package reconcile

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Truth asks queue-manager for a workload; nil when it has none.
type Truth func(ctx context.Context, id workload.ID) (*workload.Record, error)

// Sweep removes objects that carry our labels but belong to no live workload:
// left by a failure that nothing else has mended. That the stream of commands
// says nothing of them proves nothing, it may have been lost; queue-manager,
// who has the truth, is asked, and without an answer nothing is done.
func (r *Reconciler) Sweep(ctx context.Context, truth Truth) {
	r.dropForgotten(time.Now())
	for _, object := range r.cache.Objects() {
		r.mu.Lock()
		command := r.desired[object.Workload]
		r.mu.Unlock()
		if command != nil && command.State != event.Forgotten || !object.Stamped || object.Deleting || object.Outcome != "" || ctx.Err() != nil {
			continue // known, not made by Muster, on its way out, or a finished job that its owner may want to read
		}
		asking, done := context.WithTimeout(ctx, askTimeout)
		record, err := truth(asking, object.Workload)
		done()
		if err != nil {
			r.logger.Warn("cannot tell whether an object is an orphan", zap.String("workload", string(object.Workload)), zap.Error(err))
			return
		}
		if record != nil && record.Holding && record.Attempt <= object.Attempt {
			continue
		}
		r.removeOrphan(ctx, object)
	}
}

// dropForgotten drops the memory of workloads that were forgotten long ago.
func (r *Reconciler) dropForgotten(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, since := range r.forgotten {
		if now.Sub(since) > forgottenKept {
			delete(r.forgotten, id)
			delete(r.desired, id)
		}
	}
}

// askTimeout bounds a question to queue-manager.
const askTimeout = 5 * time.Second

func (r *Reconciler) removeOrphan(ctx context.Context, cached kubernetes.Object) {
	object, err := r.cluster.Get(ctx, cached.Kind, cached.Namespace, cached.Name)
	if err == nil && (object == nil || object.UID != cached.UID || object.Workload != cached.Workload || !object.Stamped || object.Outcome != "") {
		return // it is not any more what the cache shows
	}
	if err == nil {
		err = r.cluster.Delete(ctx, *object)
	}
	if err != nil {
		r.logger.Warn("orphan not removed", zap.String("workload", string(cached.Workload)), zap.Error(err))
		return
	}
	r.metrics.orphans.Inc()
	r.logger.Warn("orphan removed: no live workload owns it", zap.String("workload", string(cached.Workload)),
		zap.String("kind", cached.Kind), zap.String("namespace", cached.Namespace), zap.String("name", cached.Name))
}
