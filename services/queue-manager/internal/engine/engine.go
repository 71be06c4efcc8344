// Package engine runs queue-manager's terms as leader: it gathers what arrives,
// lets the book decide, commits the outcome in one transaction, and only then
// settles the messages and lets the outbox go.
//
// One goroutine decides, so there is one order of decisions, and another writes
// them in that order, one commit after the other: while one waits for the disk the
// next batch is decided, and what arrives meanwhile makes the one after it, so the
// number of commits does not grow with the load. After any failure of a commit the term
// ends: the memory is thrown away, everything is read anew, and unsettled
// messages come again.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/settings"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Options is what an engine works with.
type Options struct {
	Store  *store.Store
	Bus    *bus.Bus
	Logger *zap.Logger
	// Holder names this process in the leader's row.
	Holder string
	// File is what it was started with; objects that are applied come beside it.
	File settings.File
	// NodeGrace is how long a node may be not ready before gangs on it are evicted.
	NodeGrace time.Duration
	// CheckStreams is how often streams are compared with what they should have.
	CheckStreams time.Duration
	// LeaderTimeout is how long a leader may show no life before a standby takes
	// over.
	LeaderTimeout time.Duration
	Retention     store.Retention
	// LongestTerm is when a leader gives way to a standby, or begins anew: decisions
	// are replayed from the begin of a term.
	LongestTerm time.Duration
	// AcceptNewDatabase leads with a new database even where NATS tells of workloads
	// that run; they are removed.
	AcceptNewDatabase bool
	// Limits refuse submissions beyond them.
	Limits  book.Limits
	Metrics *Metrics
	Tracer  tracing.Tracer
	// Ready is called when a term is ready to decide, or another queue-manager
	// leads and this one stands by.
	Ready func()
}

const (
	retryTermAfter = 250 * time.Millisecond
	// longestPause bounds the pauses between terms that fail, and longTerm is how long
	// a term lasts after which the next failure counts as the first.
	longestPause = 15 * time.Second
	longTerm     = 30 * time.Second
	// batchLimit bounds the inputs of one transaction.
	batchLimit = 1000
	// batchBytes bounds them, too, but for the last one: large submissions are few.
	batchBytes = 8 << 20
	tickEvery  = time.Second
	// maintainEvery is how often partitions and old rows are looked after.
	maintainEvery = 10 * time.Minute
)

// Run leads term after term until ctx ends.
func Run(ctx context.Context, o Options) error {
	single := 0
	memory := newMemory()
	for {
		began := time.Now()
		err := lead(ctx, o, single, memory)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errTermOver) {
			o.Metrics.terms.WithLabelValues("over").Inc()
			single, memory.failures, memory.unrecorded = 0, 0, false
			continue
		}
		// After a failure as many inputs as a batch may have are taken one by one: what
		// cannot be stored is then found among few.
		single = 0
		var failed *commitError
		if errors.As(err, &failed) && !failed.blamed {
			single = batchLimit
		}
		pause := memory.pause(failed, time.Since(began))
		o.Metrics.terms.WithLabelValues("failed").Inc()
		o.Logger.Warn("term as leader ended; beginning another", zap.Error(err), zap.Duration("after", pause))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// pause is how long to wait before the next term. It grows while terms fail one
// after the other because the database refuses their commits, and nothing is found
// to blame for it.
func (m *memory) pause(failed *commitError, lasted time.Duration) time.Duration {
	if failed == nil || failed.blamed || !store.Suspect(failed.cause) || lasted > longTerm {
		m.failures = 0
		return retryTermAfter
	}
	m.failures++
	return min(longestPause, retryTermAfter<<min(m.failures-1, 10))
}

// errTermOver ends a term that has been as long as one may be.
var errTermOver = errors.New("the term has been as long as one may be")

// commitError marks a failure of a transaction that carried a decision.
type commitError struct {
	*Decision
	cause  error
	blamed bool // what it failed for was found
}

func (e *commitError) Error() string { return e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// lead is one term; its first inputs, so many, are taken one by one.
func lead(ctx context.Context, o Options, single int, memory *memory) error {
	if err := awaitBus(ctx, o.Bus); err != nil {
		return err
	}
	following := newStandby(ctx, o)
	term, err := o.Store.Lead(ctx, o.Holder, o.LeaderTimeout, following.start)
	if err != nil {
		following.stop()
		return err
	}
	defer term.End()
	if err := outdo(ctx, o, term); err != nil {
		following.stop()
		return err
	}
	o.Metrics.terms.WithLabelValues("begun").Inc()
	o.Metrics.epoch.Set(float64(term.Epoch))
	o.Metrics.leading.Set(1)
	defer o.Metrics.leading.Set(0)
	defer o.Metrics.aside.Set(0)
	o.Logger.Info("leader", zap.Int64("epoch", term.Epoch))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return term.Keep(ctx) })
	group.Go(func() error { return keepBus(ctx, o.Bus) })
	group.Go(func() error { return govern(ctx, o, term.Epoch, following, single, memory) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("term of epoch %d: %w", term.Epoch, err)
	}
	return nil
}

// outdo makes the epoch larger than those that the streams tell of. It is, unless the
// database has come back older and a clock was set back.
func outdo(ctx context.Context, o Options, term *store.Leadership) error {
	known, err := relay.LastEpoch(ctx, o.Bus)
	if err != nil || known < term.Epoch {
		return err
	}
	o.Logger.Warn("the streams tell of a later epoch: taking one after it", zap.Int64("epoch", term.Epoch), zap.Int64("streams", known))
	return o.Store.Raise(ctx, term, known)
}

// govern does the work of a term.
func govern(ctx context.Context, o Options, epoch int64, following *standby, single int, memory *memory) (err error) {
	began, outer := time.Now(), ctx
	if _, err := o.Bus.ConfigureStreams(ctx); err != nil {
		return err
	}
	e := &engine{
		Options: o, epoch: epoch, memory: memory, single: single, clock: clock{began}, missing: make(chan relay.Missing),
		undeliverable: make(chan relay.Undeliverable), questions: make(chan question), changes: make(chan change), begun: make(chan struct{}),
	}
	if e.book, e.applied, err = following.takeOver(ctx, epoch); err != nil {
		return err
	}
	e.book.SetLimits(o.Limits)
	e.desk = &Desk{
		Book: e.book, Ledger: postgres{o.Store}, Logger: o.Logger, Unreadable: o.Metrics.unreadable,
		Tracer: o.Tracer, Bury: o.Bus.Bury, poison: memory.poison,
	}
	e.desk.Begin(epoch, o.Limits, AskFor, e.clock.now())
	if err := e.setAside(ctx); err != nil {
		return err
	}
	keepBase, err := e.keepBase(ctx, epoch)
	if err != nil {
		return err
	}
	o.Logger.Info("the ledger is in memory", zap.Int64("version", e.book.Version()), zap.Duration("after", time.Since(began)))
	defer func() { // when nothing uses the book any more
		var failed *commitError
		if errors.As(err, &failed) {
			e.convict(outer, epoch, failed)
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { // it reads everything once more, so not while others wait for the term
		select {
		case <-ctx.Done():
		case <-e.begun:
		}
		keepBase()
		return nil
	})
	e.relay = relay.New(relay.Options{
		Epoch: epoch, Ledger: o.Store, Bus: o.Bus, Logger: o.Logger, CheckEvery: o.CheckStreams,
		Missing:       func(ctx context.Context, m relay.Missing) { pass(ctx, e.missing, m) },
		Undeliverable: func(ctx context.Context, u relay.Undeliverable) { pass(ctx, e.undeliverable, u) },
	})
	if err := e.recover(ctx); err != nil {
		return err
	}
	if e.inputs, err = subscribe(ctx, o.Bus); err != nil {
		return err
	}
	if err := e.serve(ctx, group); err != nil {
		return err
	}
	e.commits = newCommitter(e)
	group.Go(func() error { return e.relay.Run(ctx) })
	group.Go(func() error { return keepStreams(ctx, o.Bus, o.Logger, e.relay.Check) })
	group.Go(func() error { return e.commits.run(ctx) })
	group.Go(func() error { return e.run(ctx, epoch) })
	return group.Wait()
}

// engine is the state of one term.
type engine struct {
	Options
	epoch  int64
	memory *memory
	clock  clock
	looked time.Time // for what was released
	book   *book.Book
	desk   *Desk
	relay  *relay.Relay
	inputs *inputs
	// commits writes what was decided.
	commits *committer
	beside  int // pods beside the plan that have been counted
	tooMuch int // observations over the limit that have been counted
	// searched is what has been counted of searches.
	searched  admission.Searched
	single    int // so many inputs are still to be taken one by one
	announced int // how often the term was announced to the clusters
	// decide is false until everything observed has been read once; then begun is
	// closed.
	decide bool
	begun  chan struct{}
	// missing and undeliverable are what the relay finds.
	missing       chan relay.Missing
	undeliverable chan relay.Undeliverable
	questions     chan question
	// applied are the objects that govern beside the file, changes those that
	// somebody asks for.
	applied settings.Set
	changes chan change
}

// pass hands a value over unless ctx ends first.
func pass[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

func (e *engine) run(ctx context.Context, epoch int64) error {
	maintain := time.NewTicker(maintainEvery)
	defer maintain.Stop()
	e.keepPartitions(ctx, epoch)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	over := time.NewTimer(e.LongestTerm)
	defer over.Stop()
	for {
		var first *bus.Delivery
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over.C:
			e.Logger.Info("term is over", zap.Int64("epoch", epoch), zap.Duration("after", e.LongestTerm))
			return errTermOver
		case <-tick.C:
			e.do(journal.Input{Kind: journal.Tick, Grace: e.NodeGrace})
			e.count()
			e.ask(epoch)
			if err := e.checkReleased(ctx); err != nil {
				return err
			}
		case <-maintain.C:
			e.keepPartitions(ctx, epoch)
			if err := e.commits.flush(ctx, epoch); err != nil {
				return err
			}
			if err := e.Store.Tidy(ctx, epoch); store.Suspect(err) {
				e.Logger.Error("the ledger cannot be tidied; trying again", zap.Error(err), zap.Duration("after", maintainEvery))
			} else if err != nil {
				return err
			}
		case m := <-e.missing:
			e.do(journal.Input{Kind: journal.Repeat, Subjects: e.book.Commanded(func(subject string) bool { return m.All || !m.Present[subject] })})
		case u := <-e.undeliverable:
			e.do(journal.Input{Kind: journal.Undeliverable, Workload: u.Workload, Reason: u.Reason})
		case q := <-e.questions:
			e.handOver(q)
		case c := <-e.changes:
			if err := e.configure(ctx, c, epoch); err != nil {
				return err
			}
		case <-e.inputs.caughtUp():
			e.inputs.nextCaughtUp()
		case d, open := <-e.inputs.capacity.C:
			first = opened(d, open)
		case d, open := <-e.inputs.status.C:
			first = opened(d, open)
		case d, open := <-e.inputs.work:
			first = opened(d, open)
		}
		if !e.decide && e.inputs.allCaughtUp() {
			e.decide = true
			e.do(journal.Input{Kind: journal.CheckRights})
			e.do(journal.Input{Kind: journal.RewriteNodes})
			e.Ready()
			close(e.begun)
		}
		if err := e.step(ctx, first); err != nil {
			return err
		}
	}
}

func opened(d bus.Delivery, open bool) *bus.Delivery {
	if !open {
		return nil
	}
	return &d
}

// step takes in one batch, decides, and hands the outcome over to be written and
// settled.
func (e *engine) step(ctx context.Context, first *bus.Delivery) error {
	began := time.Now()
	batch := e.gather(first)
	decision, err := e.desk.Take(ctx, batch, e.decide, e.clock.now())
	e.Metrics.decisions.Observe(time.Since(began).Seconds())
	single := e.single > 0
	e.single = max(0, e.single-len(batch))
	if err != nil || decision == nil {
		return err
	}
	if err := e.commits.add(ctx, commit{Decision: decision, began: began}); err != nil {
		return err
	}
	if single { // a batch that cannot be stored must not take the next one with it
		return e.commits.flush(ctx, decision.Changes.Epoch)
	}
	return nil
}

// keepPartitions makes and drops partitions. What fails, because somebody reads
// for long, is tried again the next time; there are partitions for days.
func (e *engine) keepPartitions(ctx context.Context, epoch int64) {
	if err := e.Store.KeepPartitions(ctx, epoch, e.Retention); err != nil && ctx.Err() == nil {
		e.Logger.Warn("cannot make partitions for the next days; trying again", zap.Error(err), zap.Duration("after", maintainEvery))
	}
}

// count shows the load; it looks at all live workloads, so not on each step.
func (e *engine) count() {
	waiting, started := e.book.Counts()
	e.Metrics.waiting.Set(float64(waiting))
	e.Metrics.started.Set(float64(started))
	beside, ever := e.book.BesidePlan()
	e.Metrics.beside.Set(float64(beside))
	e.Metrics.besideEver.Add(float64(ever - e.beside))
	e.beside = ever
	tooMuch := e.book.TooMuchTold()
	e.Metrics.tooMuch.Add(float64(tooMuch - e.tooMuch))
	e.tooMuch = tooMuch
	searched := e.book.Searched()
	e.Metrics.count(searched, e.searched)
	e.searched = searched
}
