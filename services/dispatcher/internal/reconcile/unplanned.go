package reconcile

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

const (
	// unplannedEvery is how often unplanned pods of a workload are deleted: KubeRay
	// makes them again at once.
	unplannedEvery = 2 * time.Second
	// unplannedTold is how long the status names them after the last was seen.
	unplannedTold = time.Minute
)

// unplannedMessage is what the status says of them.
const unplannedMessage = "pods of it run without the labels and gates that Muster set, and are deleted; its templates or its pods were changed behind Muster's back"

// unplanned is when pods were seen and deleted that an attempt should not have.
type unplanned struct {
	attempt       int
	seen, deleted time.Time
}

// owned returns the UIDs of what was created for the status' attempt, and of the
// RayClusters of it.
func (r *Reconciler) owned(status event.GangStatus) (created, clusters []string) {
	if status.UID != "" {
		created = append(created, status.UID)
	}
	for _, o := range status.Objects {
		created = append(created, o.UID)
	}
	if len(created) == 0 {
		return nil, nil
	}
	return created, r.cache.RayClusters(created)
}

// members are the pods of the command's workload, as far as that can be told.
func (r *Reconciler) members(command *event.GangDesired) []gang.Pod {
	created, clusters := r.owned(r.lastStatus(command))
	return gang.Members(r.cache.Pods(command.Workload), created, clusters)
}

// removeUnplanned deletes the pods that the workload's objects made past Muster. It
// returns what the status is to say of them, and when to look again.
func (r *Reconciler) removeUnplanned(ctx context.Context, command *event.GangDesired, status event.GangStatus) (message string, again time.Duration, err error) {
	_, clusters := r.owned(status)
	pods := gang.Unplanned(command, r.cache.Made(clusters))
	now := r.now()
	r.mu.Lock()
	known := r.unplanned[command.Workload]
	if known.attempt != command.Attempt {
		known = unplanned{attempt: command.Attempt}
	}
	due := len(pods) > 0 && now.Sub(known.deleted) >= unplannedEvery
	if len(pods) > 0 {
		known.seen = now
	}
	if due {
		known.deleted = now
	}
	if !known.seen.IsZero() {
		r.unplanned[command.Workload] = known
	}
	r.mu.Unlock()
	if known.seen.IsZero() || now.Sub(known.seen) > unplannedTold {
		return "", 0, nil
	}
	again = unplannedTold
	if len(pods) > 0 {
		again = unplannedEvery
	}
	if !due {
		return unplannedMessage, again, nil
	}
	for _, pod := range pods {
		if pod.Deleting && now.Sub(pod.GoneBy) <= time.Duration(command.ForceAfter) {
			continue
		}
		if err := r.cluster.DeletePod(ctx, pod, pod.Deleting); err != nil {
			return "", 0, err
		}
		r.metrics.unplanned.Inc()
		r.logger.Warn("pod deleted: it is not what was admitted", zap.String("workload", string(command.Workload)),
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.String("node", pod.Node))
	}
	return unplannedMessage, again, nil
}

// sooner is the earlier of two looks; zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
