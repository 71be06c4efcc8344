package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
)

// A leader without NATS can do nothing, and no other process can lead meanwhile. It
// gives up after busPatience, and a process without NATS begins no term.
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

// keepStreams creates streams again that have lost their files, and has the relay
// compare them then. It tries again what fails, because the streams may work all the
// same.
func keepStreams(ctx context.Context, b *bus.Bus, logger *zap.Logger, compare func()) error {
	tick := time.NewTicker(streamsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		recreated, err := b.ConfigureStreams(ctx)
		if err != nil && ctx.Err() == nil && b.Ready() == nil {
			logger.Warn("cannot check the streams; retrying", zap.Error(err), zap.Duration("after", streamsEvery))
		}
		if len(recreated) > 0 {
			compare()
		}
	}
}

// observationsPurged logs the clusters that filled a stream of observations.
func (l *leader) observationsPurged(purged []bus.Cut, err error) {
	if err != nil {
		l.Logger.Warn("cannot bound the observations of clusters; retrying", zap.Error(err))
	}
	for _, p := range purged {
		l.Metrics.purged.WithLabelValues(p.Owner).Inc()
		l.Logger.Error("purged the observations of a cluster beyond the largest size; replace the keys of its services if they may be stolen",
			zap.String("cluster", p.Owner), zap.String("stream", p.Stream), zap.Uint64("subjects", p.Messages), zap.Uint64("bytes", p.Bytes))
	}
}

// historyCut logs the queues that filled a stream of history.
func (l *leader) historyCut(cuts []bus.Cut, err error) {
	if err != nil {
		l.Logger.Warn("cannot make room in a stream of history; one queue may push out the messages of others; retrying", zap.Error(err))
	}
	for _, c := range cuts {
		l.Metrics.cut.WithLabelValues(c.Stream).Add(float64(c.Messages))
		l.Logger.Warn("dropped the oldest messages of a queue from a nearly full stream", zap.String("queue", c.Owner),
			zap.String("stream", c.Stream), zap.Uint64("messages", c.Messages))
	}
}
