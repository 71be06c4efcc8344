package engine

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/settings"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Options is what the terms of a process work with.
type Options struct {
	Store  *store.Store
	Bus    *bus.Bus
	Logger *zap.Logger
	// Holder names this process in the leader's row.
	Holder string
	// File is what it was started with; objects that are applied come beside it.
	File settings.File
	// NodeGrace is how long a node may be not ready before it counts as lost: its pods get
	// other places, or the gang is evicted.
	NodeGrace time.Duration
	// ClusterSilence is how long a capacity-watcher may be silent before its cluster gets
	// no new gangs.
	ClusterSilence time.Duration
	// BudgetInterval is how often budgets are checked.
	BudgetInterval time.Duration
	// CheckStreams is how often streams are compared with what they should have.
	CheckStreams time.Duration
	// LeaderTimeout is how long a leader may send no heartbeat before a standby takes
	// over.
	LeaderTimeout time.Duration
	Retention     store.Retention
	// LongestTerm is when a leader gives way to a standby, or begins another term: decisions
	// are replayed from the beginning of a term.
	LongestTerm time.Duration
	// AcceptNewDatabase leads with a new database even where NATS has commands of workloads
	// that run; they are removed.
	AcceptNewDatabase bool
	// AcceptOldPrimary leads on an earlier timeline of Postgres than was written on, as
	// after the restore of a backup from before a promotion.
	AcceptOldPrimary bool
	// Limits refuse submissions beyond them.
	Limits  state.Limits
	Metrics *Metrics
	Tracer  tracing.Tracer
	// Ready is called when a term is ready to decide, or another queue-manager
	// leads and this one stands by.
	Ready func()
	// Terms counts the terms that fail, for the readiness of the process.
	Terms *Terms
}

// ready notes that the process stands by, or that its term decides.
func (o Options) ready(standby bool) {
	o.Terms.begun(standby)
	o.Ready()
}

const (
	retryTermAfter = 250 * time.Millisecond
	// longestPause bounds the pauses between terms that fail, and longTerm is how long
	// a term lasts after which the next failure counts as the first.
	longestPause = 15 * time.Second
	longTerm     = 30 * time.Second
	// longestTermPause bounds the pauses between terms that begin, read everything, and fail
	// for something else.
	longestTermPause = 2 * time.Second
)

// Run leads term after term until ctx ends.
func Run(ctx context.Context, o Options) error {
	single := 0
	memory := NewMemory()
	watchPrimaries(o)
	for {
		began := time.Now()
		err := lead(ctx, o, single, memory)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		memory.forgetOldRefusals(o.LongestTerm, time.Now())
		if memory.over(err) {
			o.Terms.ended(nil)
			o.Metrics.terms.WithLabelValues("over").Inc()
			single = 0
			continue
		}
		o.Terms.ended(err)
		var backoff time.Duration
		single, backoff = memory.after(err, time.Since(began))
		o.Metrics.terms.WithLabelValues("failed").Inc()
		o.Logger.Warn("term as leader ended; beginning another", zap.Error(err), zap.Duration("after", backoff))
		if err := pause.For(ctx, backoff); err != nil {
			return err
		}
	}
}

// over reports whether a term has ended in order. One that ends to try something again may have
// been short: what the database refused before it holds.
func (m *Memory) over(err error) bool {
	switch {
	case errors.Is(err, errDue):
		m.persisted = 0
	case errors.Is(err, errTermOver):
		m.afterWholeTerm()
	default:
		return false
	}
	return true
}

// after returns how the next term begins when one has failed: how many inputs are taken one
// by one, and after which pause. After a failed commit they are as many as a batch may
// have: what cannot be stored is then found among few.
func (m *Memory) after(err error, lasted time.Duration) (single int, backoff time.Duration) {
	var failed *commitError
	var refused *refusedReadError
	switch {
	case errors.As(err, &failed):
		if !failed.blamed {
			single = batchLimit
		}
		return single, m.BackOff(failed.cause, failed.blamed, lasted)
	case errors.As(err, &refused):
		return 0, m.BackOff(refused.cause, true, lasted)
	default: // of what a term reads the database may refuse something, too
		return 0, m.BackOff(err, false, lasted)
	}
}

// BackOff counts a failed term and returns how long to wait before the next one. The wait
// grows while terms fail one after the other because the database refuses their commits,
// or what they read, and nothing is found to blame for it. It grows less while they begin and
// fail for anything else: a term takes an epoch, and reads the ledger and the streams.
func (m *Memory) BackOff(cause error, blamed bool, lasted time.Duration) time.Duration {
	begun := m.led != m.counted
	m.counted = m.led
	switch {
	case cause == nil || blamed || lasted > longTerm || errors.Is(cause, errReleased):
		m.failures, m.fruitless = 0, 0
		if !blamed { // another part may be refused with the same SQLSTATE
			m.persisted = 0
		}
		return retryTermAfter
	case store.Suspect(cause):
		m.failures++
		return min(longestPause, retryTermAfter<<min(m.failures-1, 10))
	}
	m.failures = 0
	if !begun {
		return retryTermAfter
	}
	m.fruitless++
	return min(longestTermPause, retryTermAfter<<min(m.fruitless-1, 10))
}

// errTermOver ends a term that has reached LongestTerm.
var errTermOver = errors.New("the term has reached its longest duration")
