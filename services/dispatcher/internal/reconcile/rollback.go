package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// beginRollback has the objects taken back that were created before one was refused.
func (p *pass) beginRollback(ctx context.Context, one part, cause error) (time.Duration, error) {
	id := one.identity()
	message := fmt.Sprintf("%s/%s creation failure: %s %s: %s", p.command.Namespace, p.command.Name, id.Kind, id.Name, cause)
	back := rollback{attempt: p.command.Attempt, cause: message, since: p.now(), mendable: mendable(cause)}
	p.workload.setRollback(back)
	// The next dispatcher must know what this one created.
	if err := p.report(ctx); err != nil {
		return 0, err
	}
	return p.rollBack(ctx, back)
}

// rollBack refuses the objects when nothing of them is left, or when removeWithin is
// over and no pod of them runs.
func (p *pass) rollBack(ctx context.Context, back rollback) (time.Duration, error) {
	overdue := p.now().Sub(back.since) > removeWithin
	left, failed := p.presence.remove(ctx, p)
	if !overdue && (left > 0 || failed != nil) {
		return p.timing.soon(), failed
	}
	remaining, err := p.cluster.Remaining(ctx, p.command.Workload, p.command.Namespace)
	switch {
	case err != nil:
		return 0, err
	case overdue && remaining.Pods > remaining.Gated, !overdue && !remaining.Nothing():
		return p.timing.soon(), p.reaper.reap(ctx, p.workload, p.command)
	}
	cause := errors.New(back.cause)
	if back.mendable {
		cause = mendableError{cause}
	}
	if left > 0 || failed != nil {
		p.metrics.leftBehind.Inc()
		cause = fmt.Errorf("%w; objects could not be removed: %s", cause, stuck(p.left, failed))
	}
	p.workload.setRollback(rollback{})
	return p.refuse(ctx, cause)
}
