package reconcile

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// awaitEarlier removes what is left of earlier attempts and reports what is waited for.
// Nothing of the attempt is created meanwhile. The deadline of queue-manager for the
// creation bounds it: then the attempt is evicted, and its removal waits for all pods.
func (p *pass) awaitEarlier(ctx context.Context) (waits bool, err error) {
	there, err := p.earlierIsThere(ctx)
	if err != nil || !there {
		return false, err
	}
	command := *p.command
	command.Attempt--
	before := *p
	before.command = &command
	for _, cluster := range clustersOf(p.cache, &command, func(o kubernetes.Object) bool {
		return !o.Deleting && o.Attempt != 0 && o.Attempt <= command.Attempt
	}) {
		if err := p.cluster.Delete(ctx, cluster); err != nil {
			return true, err
		}
	}
	if p.objects.several() {
		if _, err := p.objects.remove(ctx, &before); err != nil {
			return true, err
		}
	}
	if err := p.reaper.reap(ctx, p.workload, &command); err != nil {
		return true, err
	}
	p.status.Message = fmt.Sprintf("attempt %d waits for the removal of pods or RayClusters of an earlier attempt", p.command.Attempt)
	return true, p.report(ctx)
}

// earlierIsThere reports whether pods or RayClusters of an earlier attempt are still
// in the cluster. queue-manager admits an attempt after all before it are gone; it may
// have lost what it knew of them, with Postgres or with its leader. The API server is
// asked, uncached, when the cache shows nothing.
func (p *pass) earlierIsThere(ctx context.Context) (bool, error) {
	if p.command.Attempt <= 1 {
		return false, nil
	}
	for _, pod := range p.owners.cache.Pods(p.command.Workload) {
		if pod.Namespace == p.command.Namespace && isEarlier(pod, p.command.Attempt) {
			return true, nil
		}
	}
	left, err := p.cluster.Remaining(ctx, p.command.Workload, p.command.Namespace)
	if err != nil {
		return false, err
	}
	return left.Earliest > 0 && left.Earliest < p.command.Attempt, nil
}

func isEarlier(pod gang.Pod, attempt int) bool {
	return pod.Holds() && pod.Attempt > 0 && pod.Attempt < attempt
}

// replace removes the Ray object of an earlier attempt, for which removeWithin is enough.
func (p *pass) replace(ctx context.Context, object *kubernetes.Object) (time.Duration, error) {
	if p.now().Sub(p.workload.creatingSince(p.command.Attempt, p.now())) > removeWithin {
		return p.refuse(ctx, fmt.Errorf("%s of attempt %d still exists after %s; remove what blocks its deletion, such as a finalizer",
			p.name(), object.Attempt, removeWithin))
	}
	if object.Deleting {
		return pollAfter, nil
	}
	return pollAfter, p.cluster.Delete(ctx, *object)
}
