package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/service/pause"
)

const (
	// retryAfter is the pause before the next attempt to take an epoch; it doubles up to
	// retryMost.
	retryAfter = 100 * time.Millisecond
	retryMost  = 2 * time.Second
)

// takeEpoch writes the next epoch into the Lease while this process holds it. The next
// holder reads it there and takes a larger one.
//
// It retries until the lease is lost or ctx ends. No error of the API server is final: a
// right may be granted, a token renewed, and a standby makes a deleted Lease again.
func (e *election) takeEpoch(ctx context.Context) (int64, error) {
	after := retryAfter
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
		after = min(2*after, retryMost)
	}
}

func (e *election) tryEpoch(ctx context.Context) (epoch int64, err error) {
	known, err := e.AtLeast(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the last epoch published under lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	err = e.write(ctx, func(lease *coordination.Lease) {
		last, _ := strconv.ParseInt(lease.Annotations[EpochKey], 10, 64) // 0 if it is missing or no number
		epoch = nextEpoch(time.Now(), last, known)
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

// aheadMost is how far an epoch may be ahead of the clock. Readers ignore messages with an
// epoch further ahead (event.AheadMost): it is forged, or of a machine whose clock was days
// ahead, and an epoch larger than it would be ignored as well.
const aheadMost = 24 * time.Hour

// nextEpoch is larger than the last epoch of the Lease and the one known from elsewhere;
// the time makes it larger than any forgotten epoch.
func nextEpoch(now time.Time, last, known int64) int64 {
	credible := func(epoch int64) int64 {
		if epoch > now.Add(aheadMost).UnixNano() {
			return 0
		}
		return epoch
	}
	return max(now.UnixNano(), credible(last)+1, credible(known)+1)
}
