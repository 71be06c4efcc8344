package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Truth asks queue-manager for a workload; nil when it has none.
type Truth func(ctx context.Context, id workload.ID) (*workload.Record, error)

// Sweep removes objects that carry our labels but belong to no live workload:
// left by a failure that nothing else has mended. That the stream of commands
// says nothing of them proves nothing, it may have been lost; queue-manager,
// who has the truth, is asked, and without an answer nothing is done.
func (r *Reconciler) Sweep(ctx context.Context, truth Truth) {
	r.dropForgotten(r.now())
	r.doubtCommands(ctx, truth)
	for _, object := range r.cache.Objects() {
		if r.isKnown(object.Workload, object.Attempt) || !object.Stamped || object.Deleting || object.Outcome != "" || ctx.Err() != nil {
			continue // known, not made by Muster, on its way out, or a finished job that its owner may want to read
		}
		owned, err := r.isOwned(ctx, truth, object.Workload, object.Attempt)
		if err != nil {
			return
		}
		if !owned {
			r.removeOrphan(ctx, object)
		}
	}
	r.sweepPods(ctx, truth)
}

// askMost bounds how many commands of a sweep are asked about.
const askMost = 100

// doubtCommands asks about what the stream of commands says, too: the database may
// have come back as of before it. The workloads take turns. What queue-manager does not
// know of in two sweeps, while the command is the same, is removed.
func (r *Reconciler) doubtCommands(ctx context.Context, truth Truth) {
	for _, command := range r.nextAsked() {
		owned, err := r.isOwned(ctx, truth, command.Workload, command.Attempt)
		if err != nil || ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		same, again := r.desired[command.Workload] == command, r.doubted[command.Workload] == command
		switch {
		case owned || !same:
			delete(r.doubted, command.Workload)
		case !again:
			r.doubted[command.Workload] = command
		default:
			delete(r.doubted, command.Workload)
			remove := *command
			remove.State = event.Absent
			r.desired[command.Workload] = &remove
		}
		r.mu.Unlock()
		if !owned && same && again {
			r.metrics.orphans.Inc()
			r.logger.Warn("workload removed: queue-manager does not know of its admission", zap.String("workload", string(command.Workload)),
				zap.Int("attempt", command.Attempt), zap.Int64("epoch", command.Epoch), zap.String("kind", command.Kind),
				zap.String("namespace", command.Namespace), zap.String("name", command.Name))
			r.Look(command.Workload)
		}
	}
}

// nextAsked returns the commands to start whose turn it is to be asked about: those in
// doubt, and then the next in the order of workloads.
func (r *Reconciler) nextAsked() (due []*event.GangDesired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []workload.ID
	for id, command := range r.desired {
		if command.State == event.Present && r.doubted[id] == nil {
			ids = append(ids, id)
		}
	}
	for id := range r.doubted {
		due = append(due, r.doubted[id])
	}
	slices.SortFunc(due, func(a, b *event.GangDesired) int { return cmp.Compare(a.Workload, b.Workload) })
	slices.Sort(ids)
	from, _ := slices.BinarySearch(ids, r.doubtedTo+"\x00")
	ids = slices.Concat(ids[from:], ids[:from])
	for _, id := range ids[:min(len(ids), askMost)] {
		due, r.doubtedTo = append(due, r.desired[id]), id
	}
	return due
}

// isKnown reports whether there is a command for the attempt, or for one after
// which it does not come.
func (r *Reconciler) isKnown(id workload.ID, attempt int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	command := r.desired[id]
	return command != nil && command.State != event.Forgotten && attempt >= command.Attempt
}

// isOwned asks whether the workload holds capacity in that attempt, or in one
// before, of which queue-manager has not told yet.
func (r *Reconciler) isOwned(ctx context.Context, truth Truth, id workload.ID, attempt int) (bool, error) {
	asking, done := context.WithTimeout(ctx, askTimeout)
	defer done()
	record, err := truth(asking, id)
	if err != nil {
		r.logger.Warn("cannot tell whether something is an orphan", zap.String("workload", string(id)), zap.Error(err))
		return false, err
	}
	return record != nil && record.Holding && record.Attempt <= attempt, nil
}

// sweepPods removes pods that carry all of our labels, belong to no live workload
// and have no object that makes them: left when somebody deletes an object and has
// its pods stay.
func (r *Reconciler) sweepPods(ctx context.Context, truth Truth) {
	for _, id := range r.cache.Workloads() {
		var suspects []gang.Pod
		for _, pod := range r.cache.Pods(id) {
			if pod.Attempt > 0 && pod.PodSet != "" && !pod.Deleting && !pod.Ended && !r.isKnown(id, pod.Attempt) && mayBeOrphan(pod) {
				suspects = append(suspects, pod)
			}
		}
		if len(suspects) == 0 || ctx.Err() != nil {
			continue
		}
		latest := slices.MaxFunc(suspects, func(a, b gang.Pod) int { return cmp.Compare(a.Attempt, b.Attempt) })
		owned, err := r.isOwned(ctx, truth, id, latest.Attempt)
		if err != nil {
			return
		}
		if !owned {
			r.removeOrphanedPods(ctx, id, suspects)
		}
	}
}

// mayBeOrphan reports whether nothing, or a RayCluster, makes such pods; those of
// other controllers are somebody's.
func mayBeOrphan(pod gang.Pod) bool {
	return pod.Controller.Kind == "" || pod.Controller.Kind == "RayCluster"
}

func (r *Reconciler) removeOrphanedPods(ctx context.Context, id workload.ID, suspects []gang.Pod) {
	orphans, err := r.cluster.OrphanedPods(ctx, id, suspects)
	if err != nil {
		r.logger.Warn("cannot tell whether pods are orphans", zap.String("workload", string(id)), zap.Error(err))
		return
	}
	for _, pod := range orphans {
		if err := r.cluster.DeletePod(ctx, pod, false); err != nil {
			r.logger.Warn("orphaned pod not removed", zap.String("workload", string(id)), zap.String("pod", pod.Name), zap.Error(err))
			continue
		}
		r.metrics.orphans.Inc()
		r.logger.Warn("orphaned pod removed: no live workload owns it", zap.String("workload", string(id)),
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name))
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
