package reconcile

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// reaper deletes pods that do not end by themselves.
type reaper struct {
	cluster podDeleter
	cache   interface {
		Pods(id workload.ID) []gang.Pod
	}
	logger  *zap.Logger
	metrics *Metrics
	now     func() time.Time
	atOnce  int
}

// reap deletes the pods, of the command's attempt and those before, that should have
// ended since ForceAfter: by force those of a node that does not answer, and those
// whose deletion has not begun, as when the garbage collector is away.
func (r *reaper) reap(ctx context.Context, t *tracked, command *event.GangCommand) error {
	now, patience := r.now(), time.Duration(command.ForceAfter)
	orphaned := now.Sub(t.removingSince(command.Attempt, now)) > patience
	var late []gang.Pod
	for _, pod := range r.cache.Pods(command.Workload) {
		if pod.Namespace != command.Namespace || !pod.Holds() || pod.Attempt > command.Attempt {
			continue
		}
		if pod.Deleting && now.Sub(pod.GoneBy) > patience || !pod.Deleting && orphaned {
			late = append(late, pod)
		}
	}
	return r.deletePods(ctx, command, late)
}

// due returns the pods whose deletion is to begin, or has taken too long.
func (r *reaper) due(command *event.GangCommand, pods []gang.Pod) (due []gang.Pod) {
	for _, pod := range pods {
		if !pod.Deleting || r.now().Sub(pod.GoneBy) > time.Duration(command.ForceAfter) {
			due = append(due, pod)
		}
	}
	return due
}

// deletePods deletes pods, by force those that are being deleted already.
func (r *reaper) deletePods(ctx context.Context, command *event.GangCommand, pods []gang.Pod) error {
	return each(ctx, r.atOnce, pods, func(ctx context.Context, pod gang.Pod) error {
		if err := r.cluster.DeletePod(ctx, pod, pod.Deleting); err != nil {
			return err
		}
		if pod.Deleting {
			r.metrics.forced.Inc()
			r.logger.Warn("pod deleted by force after its deadline", zap.String("workload", string(command.Workload)),
				zap.String("pod", pod.Name), zap.String("node", pod.Node), zap.Duration("forceAfter", time.Duration(command.ForceAfter)))
		}
		return nil
	})
}

// holding reports whether a pod of the workload is seen that takes room or will.
func (r *reaper) holding(command *event.GangCommand) bool {
	return slices.ContainsFunc(r.cache.Pods(command.Workload), func(p gang.Pod) bool {
		return p.Namespace == command.Namespace && p.Holds()
	})
}
