package app

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/reconcile"
)

const (
	// lookEvery is how often is looked whether the stream has lost statuses; with each
	// listEach-th look the subjects are compared one by one.
	lookEvery = 5 * time.Second
	listEach  = 12
	// lookWithin bounds a look.
	lookWithin = 5 * time.Second
)

// republish has statuses published again that the stream may have lost: all of them after a
// reconnection, those that the stream lacks, those that queue-manager asks for, and slowly
// all of them.
func republish(ctx context.Context, asked <-chan *event.ReportWanted, b *bus.Bus, reporter *reporter, reconciler *reconcile.Reconciler, logger *zap.Logger) error {
	reconnected, done := b.Reconnected()
	defer done()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	round := time.NewTicker(bus.RoundStep)
	defer round.Stop()
	for looks := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
			restore(ctx, b, logger)
			reconciler.RepublishAll()
		case <-look.C:
			republishLost(ctx, b, reporter, reconciler, looks%listEach == 0, logger)
			looks++
		case <-round.C:
			reconciler.RepublishNext()
		case question := <-asked:
			if reconciler.Ask(question) {
				republishLost(ctx, b, reporter, reconciler, true, logger)
			}
		}
	}
}

// restore makes the streams that the server lost.
func restore(ctx context.Context, b *bus.Bus, logger *zap.Logger) {
	if err := b.EnsureStreams(ctx); err != nil {
		// The connection may be lost again; then there is another one.
		logger.Warn("cannot restore streams", zap.Error(err))
	}
}

// republishLost has the statuses published again that the stream lacks.
func republishLost(ctx context.Context, b *bus.Bus, reporter *reporter, reconciler *reconcile.Reconciler, list bool, logger *zap.Logger) {
	bounded, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	lost, err := reporter.values.Lost(bounded, b, event.ClusterStatusFilter(reporter.cluster), list)
	if err != nil {
		if ctx.Err() == nil {
			logger.Warn("cannot compare the stream with reported statuses", zap.Error(err))
			restore(ctx, b, logger)
		}
		return
	}
	if len(lost) == 0 {
		return
	}
	logger.Warn("stream has lost statuses; republishing them", zap.String("stream", bus.StatusStream), zap.Int("lost", len(lost)))
	subjects := make(map[string]bool, len(lost))
	for _, subject := range lost {
		subjects[subject] = true
	}
	reconciler.Republish(func(id workload.ID) bool { return subjects[event.StatusSubject(reporter.cluster, id)] })
}
