// Package pause waits between attempts for as long as a context lasts.
//
// It is not for waiting until something happens, and not for code that reads no clock.
package pause

import (
	"context"
	"time"
)

// For waits for the duration, or until ctx ends, whose error it returns then.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
