package forecast

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Bounds of one forecast.
const (
	mostOfQueue = 1000   // that wait in a queue
	mostWaiting = 10_000 // that wait in all queues; each has an equal part
	mostEnds    = 20_000 // that are played
	// mostTime is how long a forecast plays, so that with rest estimates are two minutes old.
	mostTime = 5 * time.Second
	// mostWhatIfEnds is for a question, which has to be answered in seconds.
	mostWhatIfEnds = 4000
	mostWhatIfTime = 8 * time.Second
	horizon        = 90 * 24 * time.Hour
	mostEnded      = 20_000 // that are learned from at once
	mostBehind     = 3      // names of workloads without an end
	// rest is how many times as long as a forecast took it is left alone after it, so that
	// it takes a small part of one core whatever the load.
	rest = 20
	// stale is when a forecast is made again although the ledger has not changed: time
	// passes, and gangs outlive what was predicted.
	stale = time.Minute
)

// Settings are queues and policy.
type Settings = state.Settings

// Store is what is read from Postgres.
type Store interface {
	Waiting(ctx context.Context) (waits bool, version int64, err error)
	LiveState(ctx context.Context, perQueue, most int) (store.LiveState, error)
	Ended(ctx context.Context, gone []workload.ID, after, upTo int64, most int) ([]workload.Record, error)
	Keeper
}

// Forecaster keeps the estimates. Fill may be called concurrently with Run.
type Forecaster struct {
	Store   Store
	Logger  *zap.Logger
	Metrics *Metrics
	// Interval is the least time between two forecasts.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
	// Holder is the name of this queue-manager as leader.
	Holder string
	// Configure serves WhatIf.
	Configure Configure

	learning sync.Mutex // of history, and one play at a time
	history  estimate.History
	known    map[workload.ID]bool // live at the last forecast
	learned  int64                // the last submission then
	seen     int64                // the version of the ledger of the last forecast
	last     time.Time            // when it was made
	scores   scores
	kept     kept

	mu      sync.Mutex
	made    map[workload.ID]*workload.Estimate
	ends    map[workload.ID]time.Time      // of those that held places at the last forecast
	results map[string]query.EstimateScore // by queue
	beyond  beyond
}

// Run makes forecasts until ctx ends.
func (f *Forecaster) Run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		if err := f.refresh(ctx); err != nil && ctx.Err() == nil {
			f.Logger.Warn("cannot estimate when workloads start", zap.Error(err))
		}
		_ = pause.For(ctx, max(f.Interval, rest*time.Since(began))) // the loop looks at the context
	}
}

// refresh makes the estimates again if something has changed. A panic ends this forecast
// only.
func (f *Forecaster) refresh(ctx context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	waits, version, err := f.Store.Waiting(ctx)
	if err != nil {
		return err
	}
	now := f.Now()
	if version == f.seen && now.Sub(f.last) < stale {
		return nil
	}
	began := time.Now()
	f.restore(ctx)
	if !waits && len(f.scores.open) == 0 {
		f.publish(nil, nil, beyond{})
		f.seen, f.last = version, now
		return nil
	}
	live, err := f.Store.LiveState(ctx, mostOfQueue, mostWaiting)
	if err != nil {
		return err
	}
	ended, err := f.learn(ctx, live)
	if err != nil {
		return err
	}
	now = f.Now()
	f.scores.settle(live.Workloads, ended, f.Metrics)
	estimates, ends, err := f.estimate(now, live)
	if err != nil {
		return err
	}
	f.publish(estimates, ends, beyondOf(now, live))
	f.seen, f.last = version, now
	f.Metrics.took.Observe(time.Since(began).Seconds())
	f.keep(ctx)
	return nil
}

// estimate plays a snapshot forward. It returns when those that wait start, and when those that
// hold places end as similar ones did.
func (f *Forecaster) estimate(now time.Time, s store.LiveState) (starts map[workload.ID]*workload.Estimate, ends map[workload.ID]time.Time, err error) {
	from := snapshotOf(now, s)
	reasons, held := map[workload.ID]*workload.Reason{}, map[workload.ID]bool{}
	for i := range s.Workloads {
		r := &s.Workloads[i].Record
		reasons[r.ID], held[r.ID] = r.Reason, heldBack(r)
	}
	titles := map[workload.ID]string{}
	for i := range from.Running {
		titles[from.Running[i].ID] = from.Running[i].Title()
	}
	f.learning.Lock()
	defer f.learning.Unlock()
	began := f.Now() // a what-if may have had the lock for long
	bounds := estimate.Bounds{Until: idsOf(from.Waiting), Ends: mostEnds, Horizon: horizon, Enough: func() bool { return f.Now().Sub(began) > mostTime }}
	forecast, err := estimate.FastForward(from, &f.history, bounds)
	if err != nil {
		return nil, nil, err
	}
	f.scores.wait(now)
	estimates := map[workload.ID]*workload.Estimate{}
	for i := range from.Waiting {
		w := &from.Waiting[i]
		made := &workload.Estimate{MadeAt: now}
		stored := store.MadeEstimate{Workload: w.ID, Queue: w.Queue, Made: now}
		if at, known := forecast.Starts[w.ID]; known {
			stored.Wait = at.Sub(now)
			stored.Quantiles = f.scores.quantiles(w, held[w.ID], now, stored.Wait, made)
		} else {
			made.Unknown, made.Behind = unknown(reasons[w.ID], forecast, titles)
			stored.Unknown = made.Unknown
		}
		estimates[w.ID] = made
		f.kept.add(stored)
	}
	return estimates, f.endsOf(now, from.Running), nil
}

func idsOf(records []workload.Record) []workload.ID {
	ids := make([]workload.ID, len(records))
	for i := range records {
		ids[i] = records[i].ID
	}
	return ids
}

// endsOf predicts when workloads that hold places end, from what similar ones took.
func (f *Forecaster) endsOf(now time.Time, running []workload.Record) map[workload.ID]time.Time {
	ends := make(map[workload.ID]time.Time, len(running))
	for i := range running {
		r := &running[i]
		if r.Times.Admitted.IsZero() {
			continue
		}
		if total, known := f.history.Predict(&r.Workload, now.Sub(r.Times.Admitted)); known {
			ends[r.ID] = r.Times.Admitted.Add(total)
		}
	}
	return ends
}

// unknown returns why a workload that waits for a reason has no start. What never fits, or is
// held, does not start after those that run.
func unknown(reason *workload.Reason, forecast estimate.Forecast, titles map[workload.ID]string) (why string, behind []string) {
	switch {
	case reason == nil:
	case reason.Kind == workload.ReasonNeverFits:
		never, _, _ := strings.Cut(reason.Message, "; it waits until")
		return "it never fits: " + never, nil
	case reason.Kind == workload.ReasonHeld:
		return "the queue is on hold: " + reason.Message, nil
	}
	for _, id := range forecast.Endless {
		if title, runs := titles[id]; runs && len(behind) < mostBehind {
			behind = append(behind, title)
		}
	}
	switch {
	case forecast.Cut:
		return tooFarBack, nil
	case len(forecast.Endless) == 1:
		return "a workload holds places, and its end is unknown", behind
	case len(behind) > 0:
		return fmt.Sprintf("%d workloads hold places, and their ends are unknown", len(forecast.Endless)), behind
	}
	return "it does not start when all that runs has ended", nil
}

func (f *Forecaster) publish(made map[workload.ID]*workload.Estimate, ends map[workload.ID]time.Time, left beyond) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made, f.ends, f.beyond = made, ends, left
	f.results = f.scores.results()
}
