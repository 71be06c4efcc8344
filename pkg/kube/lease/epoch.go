package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
	"muster.dev/muster/pkg/service/pause"
)

// takeEpoch writes the next epoch into the Lease while this process holds it. The next
// holder reads it there and takes a larger one.
//
// It retries until the lease is lost or ctx ends. No error of the API server is final: a
// right may be granted, a token renewed, and a standby makes a deleted Lease again.
func (e *election) takeEpoch(ctx context.Context) (int64, error) {
	after := rules.EpochRetry
	for {
		epoch, err := e.tryEpoch(ctx)
		if err == nil || errors.Is(err, ErrLost) {
			return epoch, err
		}
		if ctx.Err() == nil {
			e.Logger.Warn("cannot take an epoch; retrying", e.named(), zap.Error(err), zap.Duration("after", after))
		}
		if err := pause.For(ctx, after); err != nil {
			return 0, err
		}
		after = min(2*after, rules.EpochRetryMost)
	}
}

func (e *election) tryEpoch(ctx context.Context) (epoch int64, err error) {
	known, err := e.AtLeast(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the last epoch published under lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	err = e.write(ctx, func(lease *coordination.Lease) {
		last, _ := strconv.ParseInt(lease.Annotations[EpochKey], 10, 64) // 0 if it is missing or no number
		epoch = rules.NextEpoch(time.Now(), last, known)
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[EpochKey] = strconv.FormatInt(epoch, 10)
	})
	if err != nil {
		return 0, fmt.Errorf("take epoch %d: %w", epoch, err)
	}
	return epoch, nil
}
