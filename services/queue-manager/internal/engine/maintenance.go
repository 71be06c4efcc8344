package engine

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// maintain looks after the tables. What cannot be tidied is tried again the next time.
func (l *leader) maintain(ctx context.Context) error {
	l.keepPartitions(ctx)
	if err := l.commits.flush(ctx, l.epoch); err != nil {
		return err
	}
	err := l.Store.Tidy(ctx, l.epoch)
	if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrFenced) {
		l.Logger.Error("cannot remove old rows from the ledger; retrying", zap.Error(err), zap.Duration("after", maintainEvery))
		return nil
	}
	return err
}

// keepPartitions makes and drops partitions. What fails, because another session reads
// for long, is tried again the next time; there are partitions for days.
func (l *leader) keepPartitions(ctx context.Context) {
	if err := l.Store.KeepPartitions(ctx, l.epoch, l.Retention); err != nil && ctx.Err() == nil {
		l.Logger.Warn("cannot create the partitions of the next days; retrying", zap.Error(err), zap.Duration("after", maintainEvery))
	}
}

// counted is what the metrics have of the state's own counts.
type counted struct {
	misplaced int // pods on other nodes than are reserved for them
	refused   int // observations over the limit
	searched  admission.Searched
}

// count shows the load; it looks at all live workloads, so not on each step.
func (l *leader) count() {
	waiting, started := l.state.Counts()
	l.Metrics.waiting.Set(float64(waiting))
	l.Metrics.started.Set(float64(started))
	l.Metrics.held.Set(float64(l.state.HeldQueues()))
	l.Metrics.neverFit.Set(float64(l.state.NeverFit()))
	misplaced, ever := l.state.Misplaced()
	l.Metrics.misplaced.Set(float64(misplaced))
	l.Metrics.misplacedEver.Add(float64(ever - l.counted.misplaced))
	refused := l.state.RefusedObservations()
	l.Metrics.overLimit.Add(float64(refused - l.counted.refused))
	searched := l.state.Searched()
	l.Metrics.count(searched, l.counted.searched)
	l.Metrics.silences(l.state.Silences(l.clock.now()))
	if l.decide { // before, it is not known which clusters are silent
		l.noteClusters(l.Metrics.showClusters(l.state.ClusterLoads(), l.Logger))
	}
	l.counted = counted{misplaced: ever, refused: refused, searched: searched}
}

// reportIllegalTransitions counts and logs them: each is a defect of package state.
func (l *leader) reportIllegalTransitions() {
	for _, illegal := range l.state.DrainIllegalTransitions() {
		l.Metrics.illegal.Inc()
		l.Logger.Error("illegal transition of a workload", zap.String("workload", string(illegal.Workload)), zap.Int("attempt", illegal.Attempt),
			zap.String("from", string(illegal.From)), zap.String("to", string(illegal.To)))
	}
}
