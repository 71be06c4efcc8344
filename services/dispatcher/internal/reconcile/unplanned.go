package reconcile

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

const (
	// unplannedEvery is how often unplanned pods of a workload are deleted: KubeRay
	// makes them again at once.
	unplannedEvery = 2 * time.Second
	// unplannedNamed is how long the status names them after the last was seen.
	unplannedNamed = time.Minute
	// unplannedMessage is the status' message about them.
	unplannedMessage = "pods without Muster's labels and gates are deleted; the pod templates or the pods were changed after the admission"
	// extraMessage is the status' message about pods beyond the gang's places.
	extraMessage = "more pods run than the gang has places; placement is Trusted, so Muster does not gate pods"
)

// unplannedPods deals with pods that the objects of a workload made, and that
// queue-manager reserved no place for.
type unplannedPods struct {
	cluster podDeleter
	owners  *owners
	reaper  *reaper
	rule    func(namespace string) string // strayPods of the namespace's queue
	logger  *zap.Logger
	metrics *Metrics
	now     func() time.Time
}

// remove deletes the pods that were made without Muster's labels and gates. It returns
// the status' message about them, and when to look again.
func (u *unplannedPods) remove(ctx context.Context, p *pass) (message string, again time.Duration, err error) {
	pods := gang.Unplanned(p.command, u.owners.made(p.status))
	now := u.now()
	seen, due := p.workload.noteUnplanned(p.command.Attempt, len(pods) > 0, now)
	if seen.IsZero() || now.Sub(seen) > unplannedNamed {
		return "", 0, nil
	}
	again = unplannedNamed
	if len(pods) > 0 {
		again = unplannedEvery
	}
	if !due {
		return unplannedMessage, again, nil
	}
	for _, pod := range u.reaper.due(p.command, pods) {
		if err := u.cluster.DeletePod(ctx, pod, pod.Deleting); err != nil {
			return "", 0, err
		}
		u.metrics.unplanned.Inc()
		u.logger.Warn("deleted a pod that differs from the admitted pod sets", zap.String("workload", string(p.command.Workload)),
			zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name), zap.String("node", pod.Node))
	}
	return unplannedMessage, again, nil
}

// removeExtra deals with pods of a gang under trusted placement that have no place, by
// the rule of the namespace. It returns the status'
// message about them.
func (u *unplannedPods) removeExtra(ctx context.Context, p *pass) (message string, err error) {
	rule := u.rule(p.command.Namespace)
	if !p.command.Trusted || rule != workload.WarnOfStrays && rule != workload.EvictStrays {
		return "", nil
	}
	extra := gang.Extra(p.command, u.owners.members(p.workload, p.command))
	if len(extra) == 0 {
		return "", nil
	}
	if rule == workload.WarnOfStrays {
		return extraMessage, nil
	}
	for _, pod := range extra {
		if err := u.cluster.DeletePod(ctx, pod, false); err != nil {
			return "", err
		}
		u.metrics.evicted.Inc()
		u.logger.Warn("deleted a pod for which its gang has no place",
			zap.String("workload", string(p.command.Workload)), zap.String("namespace", pod.Namespace), zap.String("pod", pod.Name))
	}
	return extraMessage + "; they are deleted", nil
}
