package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// boundRemoval bounds a removal; again and err are the result of its last step. When it
// is overdue, and an uncached read shows that no pod of the workload is past its gate,
// the places are given back: objects may stay, and the status names why. Without an
// answer of the API server nothing is concluded.
func (p *pass) boundRemoval(ctx context.Context, again time.Duration, err error) (time.Duration, error) {
	if again == 0 && err == nil {
		return again, err
	}
	p.lookForClusters()
	if p.now().Sub(p.removalBegan()) <= removeWithin {
		return again, errors.Join(err, p.reportLeft(ctx, err))
	}
	left, asked := p.cluster.Remaining(ctx, p.command.Workload, p.command.Namespace)
	if asked != nil || left.Pods > left.Gated {
		return again, errors.Join(err, p.reportLeft(ctx, err))
	}
	why := stuck(p.left, err)
	if p.status = p.workload.lastOf(p.command); p.status.Released {
		return again, err
	}
	p.status.Released, p.status.Left = true, why
	p.status.Message = fmt.Sprintf("the places are released after %s, but objects could not be removed: %s", removeWithin, why)
	p.metrics.leftBehind.Inc()
	p.logger.Warn("pods are gone, but objects remain; giving up their removal", append(p.fields(), zap.String("left", why), zap.Error(err))...)
	return 0, p.report(ctx)
}
