package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
// right may be granted, a token renewed, and the election makes a deleted Lease again.
func takeEpoch(ctx context.Context, o Options, identity string) (int64, error) {
	after := retryAfter
	for {
		epoch, err := tryEpoch(ctx, o, identity)
		if err == nil || errors.Is(err, ErrLost) {
			return epoch, err
		}
		if ctx.Err() == nil && !apierrors.IsConflict(err) { // most conflicts are with the holder's own renewal
			o.Logger.Warn("cannot take an epoch; retrying", zap.String("lease", o.Namespace+"/"+o.Name), zap.Error(err), zap.Duration("after", after))
		}
		if err := pause.For(ctx, after); err != nil {
			return 0, err
		}
		after = min(2*after, retryMost)
	}
}

func tryEpoch(ctx context.Context, o Options, identity string) (int64, error) {
	known, err := o.AtLeast(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the last epoch published under lease %s/%s: %w", o.Namespace, o.Name, err)
	}
	leases := o.Client.Leases(o.Namespace)
	lease, err := leases.Get(ctx, o.Name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("read lease %s/%s: %w", o.Namespace, o.Name, err)
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != identity {
		return 0, fmt.Errorf("take an epoch of lease %s/%s: %w", o.Namespace, o.Name, ErrLost)
	}
	last, _ := strconv.ParseInt(lease.Annotations[EpochKey], 10, 64) // 0 if it is missing or no number
	epoch := nextEpoch(time.Now(), last, known)
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[EpochKey] = strconv.FormatInt(epoch, 10)
	if _, err = leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return 0, fmt.Errorf("write epoch %d into lease %s/%s: %w", epoch, o.Namespace, o.Name, err)
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
