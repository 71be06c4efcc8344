package service

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/pause"
)

// The pauses between attempts of Patiently double from the first to the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Patiently repeats a step of a service's start until it succeeds, ctx ends, or its error
// is permanent. passes reports whether an error may pass, so that the step is retried. A
// server may be away, or refuse the service, for a while; each failure is logged.
func Patiently(ctx context.Context, logger *zap.Logger, what string, passes func(error) bool, do func() error) error {
	for after := firstPause; ; after = min(2*after, lastPause) {
		err := do()
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		logger.Warn("cannot complete a step of the start; retrying", zap.String("step", what), zap.Duration("after", after), zap.Error(err))
		if pause.For(ctx, after) != nil {
			return err
		}
	}
}
