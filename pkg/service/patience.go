package service

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Pauses between tries of Patiently double from the first to the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Patiently does what a service needs to begin until it succeeds, ctx ends, or it
// fails in a way that does not pass. A server that a service starts with may be away
// or refuse it for a while; the log names what is tried and the error.
func Patiently(ctx context.Context, logger *zap.Logger, what string, passes func(error) bool, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		logger.Warn("cannot begin yet; trying again", zap.String("what", what), zap.Duration("after", pause), zap.Error(err))
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
