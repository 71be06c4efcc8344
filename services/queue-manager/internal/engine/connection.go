package engine

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
)

// A leader without NATS can do nothing, and while it leads nobody else can: it
// gives up after busPatience. One that has no NATS does not begin.
const (
	busPatience = 10 * time.Second
	busLookEach = 250 * time.Millisecond
)

// awaitBus returns when there is a connection to NATS.
func awaitBus(ctx context.Context, b *bus.Bus) error {
	look := time.NewTicker(busLookEach)
	defer look.Stop()
	for b.Ready() != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
	return nil
}

// keepBus returns an error when there has been no connection to NATS for too long.
func keepBus(ctx context.Context, b *bus.Bus) error {
	look := time.NewTicker(busLookEach)
	defer look.Stop()
	good := time.Now()
	for {
		err := b.Ready()
		switch now := time.Now(); {
		case err == nil:
			good = now
		case now.Sub(good) > busPatience:
			return fmt.Errorf("for %s: %w", busPatience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}
