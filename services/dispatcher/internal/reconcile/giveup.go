package reconcile

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
)

// removeWithin bounds how long an object that cannot be removed keeps the places of
// its workload, once no pod runs on them.
const removeWithin = 5 * time.Minute

// inTime bounds a removal that began at since. again and err are the result of its
// last step. When that is overdue, and an uncached read shows that no pod of the
// workload is past its gate, the places are given back: objects may stay, and the
// status names why. Without an answer of the API server nothing is concluded.
func (r *Reconciler) inTime(ctx context.Context, command *event.GangDesired, since time.Time, again time.Duration, err error) (time.Duration, error) {
	if again == 0 && err == nil || r.now().Sub(since) <= removeWithin {
		return again, err
	}
	left, asked := r.cluster.Remaining(ctx, command.Workload, command.Namespace)
	if asked != nil || left.Pods > left.Gated {
		return again, err
	}
	status := r.lastStatus(command)
	if status.Released {
		return again, err
	}
	status.Released = true
	status.Message = fmt.Sprintf("the places are given back after %s, but objects stay that cannot be removed: %s", removeWithin, stuck(err))
	r.metrics.leftBehind.Inc()
	r.logger.Warn("removal given up: no pod runs, but objects stay", zap.String("workload", string(command.Workload)),
		zap.String("kind", command.Kind), zap.String("namespace", command.Namespace), zap.String("name", command.Name), zap.Error(err))
	return 0, r.tell(ctx, status)
}

// stuck says in words why a removal does not end.
func stuck(err error) string {
	if err == nil {
		return "they are being deleted and do not go; look for finalizers"
	}
	return err.Error()
}

// lastStatus is what was reported of the command's attempt, or the first status.
func (r *Reconciler) lastStatus(command *event.GangDesired) event.GangStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	status := r.reported[command.Workload]
	if status.Attempt != command.Attempt || status.Cluster != command.Cluster {
		status = event.GangStatus{Workload: command.Workload, Cluster: command.Cluster, Attempt: command.Attempt}
	}
	status.Epoch = command.Epoch
	return status
}
