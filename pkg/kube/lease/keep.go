package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/service/pause"
)

const (
	// renewals is how often a holder renews the Lease within Duration. With the default of 4 s
	// that is one write to the API server a second.
	renewals = 4
	// retries is how often a renewal that fails is tried again within the time between two
	// renewals, at first. The pauses double, up to the time between two renewals.
	retries = 4
	// lapsedMost is for how many durations a term outlives its last renewal. It does not act
	// after the first one.
	lapsedMost = 3
)

// every is the time between two renewals.
func (o *Options) every() time.Duration { return o.Duration / renewals }

// retry is the first pause after a request that has failed.
func (o *Options) retry() time.Duration { return o.every() / retries }

// keep renews the Lease until ctx ends, or until another process may have it: then its error
// wraps ErrLost.
//
// A term survives a lapse. When the API server does not confirm renewals, the term stops
// acting (Guard) shortly before the lease's end, and keeps its memory. It acts again once a renewal
// is stored: that names the version that this term has written, so no other process has had the
// Lease in between. So an API server that is away for some seconds ends no terms, and its first
// load afterwards is not that of new terms which list everything.
func (e *election) keep(ctx context.Context) error {
	after, retry, slow, lapsed, acted := e.every(), e.retry(), false, false, time.Now()
	for {
		if err := pause.For(ctx, after); err != nil {
			return err
		}
		err := e.renew(ctx, slow)
		slow = err != nil || e.held() > e.every()
		switch {
		case err == nil && e.check() != nil && time.Since(acted) > lapsedMost*e.Duration: // stored, too late to act by, again and again
			e.lose()
			return fmt.Errorf("%w: no renewal was confirmed in time to act for %s", ErrLost, time.Since(acted).Truncate(time.Millisecond))
		case err == nil && e.check() != nil:
			if !lapsed {
				lapsed = true
				e.Logger.Warn("lease is renewed too slowly; not acting until it is renewed in time", e.named(), zap.Duration("took", e.held()))
			}
			after = e.retry()
			continue
		case err == nil:
			acted = time.Now()
			if lapsed {
				e.Logger.Info("lease renewed; acting again", e.named())
			}
			after, retry, lapsed = max(e.every()-e.held(), e.retry()), e.retry(), false
			continue
		case errors.Is(err, ErrLost):
			e.lose()
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case e.held() > lapsedMost*e.Duration:
			e.lose()
			return fmt.Errorf("%w, or may: no renewal was confirmed for %s: %w", ErrLost, e.held().Truncate(time.Millisecond), err)
		}
		if !lapsed && e.check() != nil {
			lapsed = true
			e.Logger.Warn("lease is not renewed in time; not acting until it is", e.named(), zap.Error(err))
		}
		after, retry = retry, min(2*retry, e.every())
	}
}

// renew renews the Lease once. A request may be lost without a word, as one to a machine that has
// lost its power. So the first one that takes long is given up early enough for another one within
// the lease. An API server that is slow gets as long as an answer can be of use.
func (e *election) renew(ctx context.Context, slow bool) error {
	if !slow {
		within, cancel := context.WithTimeout(ctx, e.Duration-margin-e.every()-2*e.retry())
		defer cancel()
		ctx = within
	}
	return e.write(ctx, func(*coordination.Lease) {})
}
