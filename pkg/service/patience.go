package service

import (
	"context"
	"time"

	"go.uber.org/zap"
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
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		logger.Warn("cannot complete a step of the start; retrying", zap.String("step", what), zap.Duration("after", pause), zap.Error(err))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
