package forecast

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Keeper keeps estimates and their scores in Postgres.
type Keeper interface {
	Leads(ctx context.Context, holder string) (epoch int64, leads bool, err error)
	KeepEstimates(ctx context.Context, epoch int64, made []store.MadeEstimate, scored []store.ScoredEstimate) (refused int, err error)
	keptEstimates
}

// keptEstimates is what was kept before.
type keptEstimates interface {
	OpenEstimates(ctx context.Context) (first, last []store.MadeEstimate, err error)
	Scores(ctx context.Context) ([]store.ScoredEstimate, error)
}

const (
	// mostKept bounds the estimates that are kept after one forecast; those that are left out
	// are after the next one.
	mostKept = 2000
	// mostUnkept bounds the scores that wait to be kept.
	mostUnkept = 10_000
	// keptApart is the least time between two kept estimates of a workload, and keptPart the
	// part of its time in the queue: of a wait of 30 days about 80 estimates are kept.
	keptApart = time.Minute
	keptPart  = 8
	// sameStart, and a tenth of the wait, is how far estimates may differ and be the same.
	sameStart = time.Minute
)

// kept is what is kept, or to be kept, of the workloads that wait. The queue-manager that leads
// keeps its estimates, so each workload has one history.
type kept struct {
	epoch    int64 // for which the scores were restored
	restored bool
	of       map[workload.ID]lastKept
	due      []store.MadeEstimate
}

// lastKept is what is kept of a workload.
type lastKept struct {
	first time.Time
	last  store.MadeEstimate
}

// add has an estimate kept if it is the first of its workload, or differs from the last one.
func (k *kept) add(e store.MadeEstimate) {
	if m, known := k.of[e.Workload]; len(k.due) < mostKept && (!known || m.due(e)) {
		k.due = append(k.due, e)
	}
}

// due reports whether an estimate is to be kept, too.
func (m lastKept) due(e store.MadeEstimate) bool {
	if e.Made.Sub(m.last.Made) < max(keptApart, e.Made.Sub(m.first)/keptPart) {
		return false
	}
	if (e.Quantiles == nil) != (m.last.Quantiles == nil) || e.Unknown != m.last.Unknown {
		return true
	}
	for i := range min(len(e.Quantiles), len(m.last.Quantiles)) {
		off := e.Made.Add(e.Quantiles[i]).Sub(m.last.Made.Add(m.last.Quantiles[i])).Abs()
		if off > max(sameStart, e.Quantiles[i]/10) {
			return true
		}
	}
	return false
}

// restore takes over the scores of earlier leaders, when the process begins and when it begins to
// lead. Until it succeeds, scores are those of this process.
func (f *Forecaster) restore(ctx context.Context) {
	epoch, leads, err := f.Store.Leads(ctx, f.Holder)
	if err == nil && (!f.kept.restored || leads && epoch != f.kept.epoch) {
		if err = f.read(ctx); err == nil {
			f.kept.restored, f.kept.epoch = true, epoch
		}
	}
	if err != nil && ctx.Err() == nil {
		f.Logger.Warn("cannot read earlier estimates", zap.Error(err))
	}
}

// read reads the kept scores, and the estimates that are not scored yet.
func (f *Forecaster) read(ctx context.Context) error {
	first, last, err := f.Store.OpenEstimates(ctx)
	if err != nil {
		return err
	}
	past, err := f.Store.Scores(ctx)
	if err != nil {
		return err
	}
	fresh := scores{open: map[workload.ID]open{}, queues: map[string]*scored{}}
	for _, e := range past {
		if len(e.Quantiles) != len(estimate.Levels()) {
			continue // of another release
		}
		fresh.score(open{e.Queue, e.Made, e.Wait, e.Quantiles}, e.Started)
	}
	for name, q := range fresh.queues {
		f.Metrics.scored(name, q.last)
	}
	f.kept.of = map[workload.ID]lastKept{}
	for _, e := range first {
		if len(e.Quantiles) != len(estimate.Levels()) {
			continue
		}
		fresh.open[e.Workload] = open{e.Queue, e.Made, e.Wait, e.Quantiles}
		f.kept.of[e.Workload] = lastKept{first: e.Made, last: e}
	}
	for _, e := range last {
		m, known := f.kept.of[e.Workload]
		if !known {
			m.first = e.Made
		}
		m.last = e
		f.kept.of[e.Workload] = m
	}
	for id, o := range f.scores.open { // what this process estimated and the leader did not keep
		if _, known := fresh.open[id]; !known {
			fresh.open[id] = o
		}
	}
	f.carryUnkept(&fresh)
	f.scores = fresh
	return nil
}

// carryUnkept takes over the scores that could not be kept yet.
func (f *Forecaster) carryUnkept(fresh *scores) {
	fresh.settled = f.scores.settled
	for _, e := range fresh.settled {
		delete(fresh.open, e.Workload)
		fresh.score(open{e.Queue, e.Made, e.Wait, e.Quantiles}, e.Started)
	}
}

// keep keeps what is due, if this queue-manager leads. What it cannot keep now it tries again
// after the next forecast.
func (f *Forecaster) keep(ctx context.Context) {
	k := &f.kept
	due, settled := k.due, f.scores.settled
	k.due = nil
	for id := range k.of {
		if !f.known[id] {
			delete(k.of, id) // it has ended
		}
	}
	epoch, leads, err := f.Store.Leads(ctx, f.Holder)
	if err == nil && !leads {
		f.scores.settled = nil // its leader keeps them
		return
	}
	if err == nil && len(due)+len(settled) > 0 {
		var refused int
		if refused, err = f.Store.KeepEstimates(ctx, epoch, due, settled); refused > 0 {
			f.Logger.Error("the database refuses to store estimates; they are left out", zap.Int("refused", refused))
		}
	}
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, store.ErrFenced) {
			f.Logger.Warn("cannot keep estimates", zap.Error(err))
		}
		return
	}
	f.scores.settled = nil
	if k.of == nil {
		k.of = map[workload.ID]lastKept{}
	}
	for _, e := range due {
		m, known := k.of[e.Workload]
		if !known {
			m.first = e.Made
		}
		m.last = e
		k.of[e.Workload] = m
	}
}
