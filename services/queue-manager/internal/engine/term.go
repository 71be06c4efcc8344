package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// lead is one term; its first inputs, single of them, are applied one by one.
func lead(ctx context.Context, o Options, single int, memory *Memory) error {
	if err := awaitBus(ctx, o.Bus); err != nil {
		return err
	}
	if err := heedPrimary(ctx, o); err != nil {
		return err
	}
	following := newStandby(ctx, o)
	term, err := o.Store.Lead(ctx, o.Holder, o.LeaderTimeout, following.start)
	if err != nil {
		following.stop()
		return err
	}
	defer term.End()
	memory.StartTerm(term.Before, term.Epoch)
	if err = raiseEpoch(ctx, o, term); err == nil {
		memory.StartTerm(term.Before, term.Epoch)
		// A leader before may have noted another one while this one waited.
		err = heedPrimary(ctx, o)
	}
	if err == nil {
		err = term.Check()
	}
	if err != nil {
		following.stop()
		return err
	}
	o.Metrics.terms.WithLabelValues("begun").Inc()
	o.Metrics.epoch.Set(float64(term.Epoch))
	o.Metrics.leading.Set(1)
	defer o.Metrics.leading.Set(0)
	defer o.Metrics.quarantined.Set(0)
	defer o.Metrics.silences(nil)
	defer o.Metrics.showClusters(nil, o.Logger)
	defer o.Metrics.submissions.Set(0)
	defer o.Metrics.accelerators.end()
	o.Logger.Info("acquired leadership", zap.Int64("epoch", term.Epoch))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return term.Keep(ctx) })
	group.Go(func() error { return keepBus(ctx, o.Bus) })
	group.Go(func() error { return keepPrimary(ctx, o, term.Lineage()) })
	group.Go(func() error { return newLeader(o, term.Epoch, single, memory).serve(ctx, term.Lineage(), following) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("term of epoch %d: %w", term.Epoch, err)
	}
	return nil
}

// raiseEpoch makes the epoch larger than those in the streams. It is, unless the database
// was restored to an older state and a clock was set back.
func raiseEpoch(ctx context.Context, o Options, term *store.Leadership) error {
	known, err := relay.LastEpoch(ctx, o.Bus)
	if err != nil || known < term.Epoch {
		return err
	}
	o.Logger.Warn("streams have a later epoch; taking the one after it", zap.Int64("epoch", term.Epoch), zap.Int64("streams", known))
	return o.Store.Raise(ctx, term, known)
}

func newLeader(o Options, epoch int64, single int, memory *Memory) *leader {
	return &leader{
		Options: o, epoch: epoch, memory: memory, single: single, clock: clock{time.Now()}, begun: make(chan struct{}),
		commandsFound: make(chan relay.CommandsFound), undeliverable: make(chan relay.Undeliverable),
		questions: make(chan question), changes: make(chan change), clusterNews: make(chan *event.ClusterChanged, clusterNews),
		answersLost: make(chan struct{}),
	}
}

// serve does the work of a term.
func (l *leader) serve(ctx context.Context, lineage store.Lineage, following *standby) (err error) {
	if _, err := l.Bus.ConfigureStreams(ctx); err != nil {
		return err
	}
	unrecovered, err := notePrimary(ctx, l.Options, lineage)
	if err != nil {
		return err
	}
	l.memory.mayBeOlder = l.memory.mayBeOlder || unrecovered
	if err := l.loadState(ctx, following); err != nil {
		return err
	}
	writeCheckpoint, err := l.beginCheckpoint(ctx)
	if err != nil {
		return err
	}
	l.Logger.Info("state loaded", zap.Int64("version", l.state.Version()), zap.Duration("after", time.Since(l.clock.began)))
	defer func(ctx context.Context) { // when nothing uses the state any more
		l.noteMissingCommit(ctx, err)
		l.diagnose(ctx, err)
	}(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { // it reads everything once more, so not while others wait for the term
		select {
		case <-ctx.Done():
		case <-l.begun:
		}
		writeCheckpoint()
		return nil
	})
	ends, err := l.recover(ctx)
	if err != nil {
		return err
	}
	if err := noteRecovered(ctx, l.Options, lineage); err != nil {
		return err
	}
	if err := l.rememberFailedOver(ctx); err != nil {
		return err
	}
	l.relay = l.newRelay(ends)
	if l.inputs, err = subscribe(ctx, l.Bus); err != nil {
		return err
	}
	if err := l.serveQuestions(ctx, group); err != nil {
		return err
	}
	l.start(ctx, group)
	return group.Wait()
}

// noteMissingCommit has the next term, also one of another process, find out what the database
// has lost, if the term has ended because of that.
func (l *leader) noteMissingCommit(ctx context.Context, ended error) {
	if !errors.Is(ended, store.ErrCommitMissing) {
		return
	}
	l.memory.mayBeOlder = true
	if err := l.Bus.SetNote(ctx, recoveredNote, commitMissing); err != nil {
		l.Logger.Warn("cannot note that the database lacks a commit; only this process remembers it", zap.Error(err))
	}
}

// loadState takes over the state, and begins the step and the writer on it.
func (l *leader) loadState(ctx context.Context, following *standby) (err error) {
	if l.state, l.applied, err = following.takeOver(ctx, l.epoch); err != nil {
		return err
	}
	l.state.SetLimits(l.Limits)
	l.state.SetSilentAfter(l.ClusterSilence)
	l.step = &Step{
		State: l.state, Archive: l.Store, Logger: l.Logger, Unreadable: l.Metrics.unreadable,
		Tracer: l.Tracer, DeadLetter: l.Bus.PublishDeadLetter, Publish: l.publish,
	}
	l.writer = NewWriter(l.Store, l.step)
	l.step.Begin(l.epoch, l.Limits, AskFor, l.clock.now())
	return l.beginQuarantine(ctx)
}

func (l *leader) newRelay(compared map[string]store.Watermark) *relay.Relay {
	return relay.New(relay.Options{
		Epoch: l.epoch, Store: l.Store, Bus: l.Bus, Logger: l.Logger, CheckEvery: l.CheckStreams, Compared: compared,
		CommandsFound: func(ctx context.Context, f relay.CommandsFound) { pass(ctx, l.commandsFound, f) },
		Undeliverable: func(ctx context.Context, u relay.Undeliverable) { pass(ctx, l.undeliverable, u) },
		Refused:       func(what string) { l.Metrics.notStorable.WithLabelValues(what).Inc() },
	})
}

// start starts the goroutines of the term; when one fails, all end.
func (l *leader) start(ctx context.Context, group *errgroup.Group) {
	l.Metrics.accelerators.begin(l.clock.now(), l.state.HeldNow(l.clock.now()))
	l.commits = &commitQueue{writer: l.writer, handToRelay: l.relay.Hand, observe: l.Metrics.observe, waiting: make(chan commit, inFlight)}
	group.Go(func() error {
		retryLetters(ctx, l.refusedLetters, l.messageLog(), l.Logger)
		return nil
	})
	group.Go(func() error { return l.relay.Run(ctx) })
	group.Go(func() error { return keepStreams(ctx, l.Bus, l.Logger, l.relay.Check) })
	group.Go(func() error { return l.Bus.KeepObserved(ctx, bus.DefaultObservedLimits(), l.observationsPurged) })
	group.Go(func() error { return l.Bus.KeepHistory(ctx, l.historyCut) })
	group.Go(func() error { return watchSubmissions(ctx, l.Bus, submissionsEvery, l.Metrics.submissions.Set) })
	group.Go(func() error { return l.publishClusters(ctx) })
	group.Go(func() error { return l.watchAnswers(ctx) })
	group.Go(func() error { return l.commits.run(ctx) })
	group.Go(func() error { return l.run(ctx) })
}

// diagnose deals with what the database has refused, so that the next term goes on
// without it.
func (l *leader) diagnose(ctx context.Context, err error) {
	var failed *commitError
	if errors.As(err, &failed) {
		l.diagnoseCommit(ctx, failed)
	}
	var refused *refusedReadError
	if errors.As(err, &refused) {
		l.rejectUnreadable(ctx, refused)
	}
}
