package suite

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// last lets a fault last.
func (w *world) last(t *testing.T, trial Trial) {
	lasts := trial.For
	if trial.And != nil {
		lasts = max(lasts, trial.And.For)
	}
	select {
	case <-time.After(lasts): // the length of a fault is what is tested
	case <-t.Context().Done():
	}
}

// strike causes the fault of a trial.
func (w *world) strike(t *testing.T, trial Trial) (mend func(context.Context) error, err error) {
	t.Helper()
	var mends, last []func(context.Context) error
	heal := func(ctx context.Context) error {
		var failed []error
		for _, each := range slices.Concat(mends, last) {
			failed = append(failed, each(ctx))
		}
		return errors.Join(failed...)
	}
	leader, epoch := w.leader(t)
	for each := &trial; each != nil; each = each.And {
		if each.Fault == Back {
			w.mu.Lock()
			w.unseen = true
			w.mu.Unlock()
		}
		for _, part := range each.Parts {
			if part == Leader {
				part = leader
			}
			mend, err := w.cause(t, part, each.Fault)
			if err != nil {
				return nil, errors.Join(err, heal(w.ctx))
			}
			if each.Fault == Lowered { // a fault of another part may keep it from being mended
				last = append(last, mend)
			} else {
				mends = append(mends, mend)
			}
		}
	}
	if trial.Rival {
		w.until(t, "the other queue-manager leads", func() bool {
			now, later := w.leader(t)
			return now != leader && later > epoch
		})
	}
	return heal, nil
}

// cause causes a fault of one part. What needs no provider the suite does itself.
func (w *world) cause(t *testing.T, part string, fault Fault) (mend func(context.Context) error, err error) {
	t.Helper()
	if fault == Lowered {
		return w.lowerQuota(t)
	}
	return w.Break(w.ctx, part, fault)
}
