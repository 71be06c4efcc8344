package reconcile

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// removal is since when an attempt is being removed. After a restart it counts
// anew, so force comes later, never earlier.
type removal struct {
	attempt int
	since   time.Time
}

// removing notes that the attempt is being removed and returns since when.
func (r *Reconciler) removing(command *event.GangDesired) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.removed[command.Workload].attempt != command.Attempt {
		r.removed[command.Workload] = removal{command.Attempt, r.now()}
	}
	return r.removed[command.Workload].since
}

// awaitRemoval reports when nothing is left, and helps what does not go.
func (r *Reconciler) awaitRemoval(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	again, err := r.awaitRelease(ctx, command, status)
	if err != nil || again == 0 {
		return again, err
	}
	return again, r.reap(ctx, command)
}

// reap deletes pods by force that are still there so long after they should have
// ended by themselves, such as those of a node that does not answer; and pods
// that nobody has begun to delete, when the garbage collector is away.
func (r *Reconciler) reap(ctx context.Context, command *event.GangDesired) error {
	now, patience := r.now(), time.Duration(command.ForceAfter)
	orphaned := now.Sub(r.removing(command)) > patience
	var late []gang.Pod
	for _, pod := range r.cache.Pods(command.Workload) {
		if pod.Namespace != command.Namespace || !pod.Holds() || pod.Attempt > command.Attempt {
			continue
		}
		if pod.Deleting && now.Sub(pod.GoneBy) > patience || !pod.Deleting && orphaned {
			late = append(late, pod)
		}
	}
	return r.deletePods(ctx, command, late, patience)
}

// displace deletes the pods that were sent to places that are not the gang's any
// more. It reports whether there are any.
func (r *Reconciler) displace(ctx context.Context, command *event.GangDesired) (bool, error) {
	pods := r.members(command)
	displaced := gang.Displaced(command, pods, r.sentOf(command, pods))
	now, patience := r.now(), time.Duration(command.ForceAfter)
	var due []gang.Pod
	for _, pod := range displaced {
		if !pod.Deleting || now.Sub(pod.GoneBy) > patience {
			due = append(due, pod)
		}
	}
	return len(displaced) > 0, r.deletePods(ctx, command, due, patience)
}

func (r *Reconciler) deletePods(ctx context.Context, command *event.GangDesired, pods []gang.Pod, patience time.Duration) error {
	return each(ctx, r.atOnce, pods, func(ctx context.Context, pod gang.Pod) error {
		if err := r.cluster.DeletePod(ctx, pod, pod.Deleting); err != nil {
			return err
		}
		if pod.Deleting {
			r.metrics.forced.Inc()
			r.logger.Warn("pod deleted by force: it has not ended in time", zap.String("workload", string(command.Workload)),
				zap.String("pod", pod.Name), zap.String("node", pod.Node), zap.Duration("late", patience))
		}
		return nil
	})
}

// shutDown removes the cluster of a finished job and leaves the job to be read.
// When that does not end all pods in time the job goes, too.
func (r *Reconciler) shutDown(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	if r.now().Sub(r.removing(command)) > time.Duration(command.ForceAfter) && !status.Released {
		return r.remove(ctx, command, status)
	}
	for _, cluster := range r.cache.Clusters(command.Workload) {
		if cluster.Namespace != command.Namespace || cluster.Deleting {
			continue
		}
		if err := r.cluster.Delete(ctx, cluster); err != nil {
			return 0, err
		}
	}
	return r.awaitRelease(ctx, command, status)
}

// announce tells the object of its eviction, or that there will be none.
func (r *Reconciler) announce(ctx context.Context, command *event.GangDesired, object *kubernetes.Object) error {
	wanted := ""
	if !command.EvictAt.IsZero() {
		wanted = command.EvictAt.UTC().Format(time.RFC3339)
	}
	if object.EvictingAt == wanted {
		return nil
	}
	return r.cluster.Announce(ctx, *object, command.EvictAt)
}
