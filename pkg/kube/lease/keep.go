package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordination "k8s.io/api/coordination/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
	"muster.dev/muster/pkg/service/pause"
)

// keep renews the Lease until ctx ends, or until another process may have it: then its error
// wraps ErrLost. A term survives a lapse (rules.Holder).
func (e *election) keep(ctx context.Context) error {
	holder := rules.NewHolder(e.times(), time.Now())
	after := holder.Every()
	for {
		if err := pause.For(ctx, after); err != nil {
			return err
		}
		var next rules.Next
		err := e.renew(ctx, holder)
		switch {
		case err == nil:
			next = holder.Renewed(time.Now(), e.held())
		case errors.Is(err, ErrLost):
			e.lose()
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			next = holder.Failed(e.held())
		}
		if next.Lost {
			e.lose()
			return lostFor(next.For, err)
		}
		e.logLapse(next, err)
		after = next.After
	}
}

// lostFor is why a lease is lost that no renewal was of use to for so long.
func lostFor(useless time.Duration, err error) error {
	useless = useless.Truncate(time.Millisecond)
	if err == nil {
		return fmt.Errorf("%w: no renewal was confirmed in time to act for %s", ErrLost, useless)
	}
	return fmt.Errorf("%w, or may: no renewal was confirmed for %s: %w", ErrLost, useless, err)
}

// logLapse logs that the term stops to act, and that it acts again.
func (e *election) logLapse(next rules.Next, err error) {
	switch {
	case next.Resumes:
		e.Logger.Info("lease renewed; acting again", e.named())
	case next.Stops && err == nil:
		e.Logger.Warn("lease is renewed too slowly; not acting until it is renewed in time", e.named(), zap.Duration("took", e.held()))
	case next.Stops:
		e.Logger.Warn("lease is not renewed in time; not acting until it is", e.named(), zap.Error(err))
	}
}

// renew renews the Lease once.
func (e *election) renew(ctx context.Context, holder *rules.Holder) error {
	if most, bounded := holder.Within(); bounded {
		within, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		ctx = within
	}
	return e.write(ctx, func(*coordination.Lease) {})
}
