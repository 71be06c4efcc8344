package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

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

// streamsEvery is how often the leader looks whether the streams are sound.
const streamsEvery = 30 * time.Second

// keepStreams makes streams again that have lost their files, and has the relay
// compare them then. What fails is tried again: the streams may do all the same.
func keepStreams(ctx context.Context, b *bus.Bus, logger *zap.Logger, compare func()) error {
	tick := time.NewTicker(streamsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		remade, err := b.ConfigureStreams(ctx)
		if err != nil && ctx.Err() == nil && b.Ready() == nil {
			logger.Warn("cannot look after the streams; trying again", zap.Error(err), zap.Duration("after", streamsEvery))
		}
		if len(remade) > 0 {
			compare()
		}
	}
}
