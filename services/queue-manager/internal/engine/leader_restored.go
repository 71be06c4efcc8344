package engine

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// recover brings streams and ledger together, before anything else of the term, and
// returns up to where it has compared the streams.
func (l *leader) recover(ctx context.Context) (ends map[string]store.Watermark, err error) {
	before, err := l.unrecovered(ctx)
	if err != nil {
		return nil, err
	}
	found, err := relay.FindAhead(ctx, l.Store, l.Bus, before)
	if err != nil {
		return nil, err
	}
	if err := l.refuseNew(ctx, found); err != nil {
		return nil, err
	}
	last, err := l.Store.LastCommit(ctx)
	if err != nil {
		return nil, err
	}
	if !found.Empty() && !found.Repeated {
		l.Logger.Error("database is older than the streams; recovering from the streams",
			zap.Int("commands", len(found.Commands)), zap.Int("workloads", len(found.LastEvents)), zap.Time("last commit", last))
	}
	log := l.messageLog()
	r, err := Recovery{
		Step: l.step, Found: found, LastCommit: last, Submissions: log, Now: l.clock.now(), Save: l.saver(ctx), MayBeOlder: l.memory.mayBeOlder,
		Distrust: func() error { return l.distrustCommands(ctx) },
	}.Run(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.noteUnrecovered(ctx, before, relay.Unrecovered{From: found.From, Workloads: r.Withheld}); err != nil {
		return nil, err
	}
	l.memory.mayBeOlder = false
	l.logRecovered(r)
	if l.refusedLetters, err = l.step.NameLost(ctx, r, log); err != nil {
		return nil, err
	}
	l.Metrics.recovered.WithLabelValues("ended").Add(float64(len(r.Ended)))
	l.Metrics.recovered.WithLabelValues("lost").Add(float64(len(r.Lost)))
	l.Metrics.recovered.WithLabelValues("unasked").Add(float64(len(r.Unasked)))
	return found.Ends, nil
}

// distrustCommands has terms send all commands again. What the database refuses is only in the log:
// a term that ended for it would end for it every time.
func (l *leader) distrustCommands(ctx context.Context) error {
	err := relay.DistrustCommands(ctx, l.Store, l.epoch)
	if store.Suspect(err) {
		l.Metrics.notStorable.WithLabelValues("mark").Inc()
		l.Logger.Error("cannot note that commands are withheld; they are not sent again when their workloads are released", zap.Error(err))
		return nil
	}
	return err
}

// saver returns what commits the steps of a recovery, one after the other.
func (l *leader) saver(ctx context.Context) func(applied []bus.Delivery) error {
	return func(applied []bus.Delivery) error {
		decision, err := l.decideOn(ctx, nil) // it decides nothing before it has caught up
		if err != nil || decision == nil {
			return err
		}
		// Its content is in the outbox, from which the relay begins.
		if err := l.writer.Write(ctx, decision, func([]store.Outgoing) {}); err != nil {
			decision.Batch = applied // one of them may be what is refused
			return &commitError{decision: decision, cause: err}
		}
		return nil
	}
}

// ErrNewDatabase refuses to lead with a database in which nothing is, while NATS
// has commands of workloads: all that runs would be removed.
var ErrNewDatabase = errors.New("the database is new")

// refuseNew returns ErrNewDatabase where a new database is rather a wrong one.
func (l *leader) refuseNew(ctx context.Context, found relay.Found) error {
	started := 0
	for _, c := range found.Commands {
		if c.State == event.Present {
			started++
		}
	}
	if started == 0 || l.AcceptNewDatabase {
		return nil
	}
	fresh, err := l.Store.New(ctx)
	if err != nil || !fresh {
		return err
	}
	return fmt.Errorf("%w, but NATS has commands that started %d workloads, which would be removed: "+
		"check database-url, restore a backup, or start with --accept-new-database to remove them", ErrNewDatabase, started)
}

// logRecovered names what the ledger has again, and what is removed.
func (l *leader) logRecovered(r Recovered) {
	for _, id := range r.Requeued {
		l.Logger.Warn("requeued a workload that the database had lost", zap.String("workload", string(id)))
	}
	if len(r.Unanswered) > 0 {
		l.Logger.Info("queued submissions that had no answer after Postgres was replaced", zap.Int("submissions", len(r.Unanswered)))
	}
	for _, c := range r.Removed {
		l.Logger.Warn("removing objects whose admission the database has lost", zap.String("workload", string(c.Workload)),
			zap.String("cluster", c.Cluster), zap.String("kind", c.Kind), zap.String("namespace", c.Namespace), zap.String("name", c.Name))
	}
	l.Metrics.recovered.WithLabelValues("requeued").Add(float64(len(r.Requeued)))
	l.Metrics.recovered.WithLabelValues("removed").Add(float64(len(r.Removed)))
}
