package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// laterError is returned for an object of a later attempt than the command.
type laterError struct{ object *kubernetes.Object }

// Error implements error.
func (e *laterError) Error() string {
	return fmt.Sprintf("%s %s/%s is of the later attempt %d", e.object.Kind, e.object.Namespace, e.object.Name, e.object.Attempt)
}

// takeDown does the next step towards nothing being left of a workload, or of a
// finished job all but its objects, which are left to be read. When that does not end
// all pods in time the objects go, too.
func (p *pass) takeDown(ctx context.Context) (time.Duration, error) {
	if p.command.State == event.Absent {
		return p.remove(ctx)
	}
	late := p.now().Sub(p.workload.removingSince(p.command.Attempt, p.now())) > time.Duration(p.command.ForceAfter)
	if late && !p.status.Released {
		return p.remove(ctx)
	}
	for _, cluster := range clustersOf(p.cache, p.command, func(o kubernetes.Object) bool { return !o.Deleting }) {
		if err := p.cluster.Delete(ctx, cluster); err != nil {
			return 0, err
		}
	}
	return p.awaitRelease(ctx)
}

// remove deletes the objects and reports when nothing is left.
func (p *pass) remove(ctx context.Context) (time.Duration, error) {
	left, err := p.presence.remove(ctx, p)
	var later *laterError
	switch {
	case errors.As(err, &later):
		return p.outdated(ctx, later.object)
	case err != nil && !isBundle(p.command):
		return 0, err
	case err != nil: // what fails for one does not keep the pods of the others
		return 0, errors.Join(err, p.reaper.reap(ctx, p.workload, p.command))
	case left == 0:
		p.status.Gone = true
		return p.awaitRemoval(ctx)
	}
	if isBundle(p.command) && p.status.Gone { // one was missed: report that, the others follow
		if err := p.report(ctx); err != nil {
			return 0, err
		}
	}
	return p.timing.soon(), errors.Join(p.reaper.reap(ctx, p.workload, p.command), p.placer.pinCleanup(ctx, p))
}

// awaitRemoval reports when nothing is left, and deletes pods that do not end.
func (p *pass) awaitRemoval(ctx context.Context) (time.Duration, error) {
	again, err := p.awaitRelease(ctx)
	if err != nil || again == 0 {
		return again, err
	}
	return again, p.reaper.reap(ctx, p.workload, p.command)
}

// awaitRelease reports the status, as released when an uncached read finds no pod of
// the workload, and nothing that could make more of them.
func (p *pass) awaitRelease(ctx context.Context) (time.Duration, error) {
	if p.status.Released {
		return 0, p.report(ctx)
	}
	if err := p.placer.pinCleanup(ctx, p); err != nil {
		return 0, err
	}
	// Each pod that ends leads here; the API server is asked once none is seen.
	if !p.reaper.holding(p.command) {
		left, err := p.cluster.Remaining(ctx, p.command.Workload, p.command.Namespace)
		if err != nil {
			return 0, err
		}
		if p.status.Released = left.Nothing(); p.status.Released {
			p.status.Left = ""
		}
	}
	if err := p.report(ctx); err != nil {
		return 0, err
	}
	if !p.status.Released {
		return pollAfter, nil
	}
	return 0, nil
}
