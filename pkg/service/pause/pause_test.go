package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/service/pause"
)

func TestFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pause, ends, lasts time.Duration
		err                error
	}{
		"over":          {time.Minute, time.Hour, time.Minute, nil},
		"interrupted":   {time.Hour, time.Minute, time.Minute, context.DeadlineExceeded},
		"ended already": {time.Hour, 0, 0, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				began := time.Now()
				err := pause.For(ctx, c.pause)
				if lasted := time.Since(began); lasted != c.lasts || !errors.Is(err, c.err) {
					t.Errorf("paused for %s with error %v, want %s and %v", lasted, err, c.lasts, c.err)
				}
			})
		})
	}
}
