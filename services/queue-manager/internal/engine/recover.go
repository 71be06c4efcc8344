package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// keptMargin is how long before the last commit the submissions begin that are looked
// for in NATS: clocks differ, and messages wait.
const keptMargin = 10 * time.Minute

// recoverBatch bounds the commands or submissions of one commit: each may have a
// manifest.
const recoverBatch = 100

// Lost is a workload of which events told, and the ledger and NATS know nothing more.
type Lost struct {
	workload.Record
	// Delivery is the last event of it.
	Delivery bus.Delivery
}

// Recovered is what was found of a database that came back older.
type Recovered struct {
	// Requeued are workloads that were lost and are queued again.
	Requeued []workload.ID
	// Removed are the commands whose objects are removed: the ledger has no workload.
	Removed []*event.GangDesired
	// Lost were told to be queued and have to be submitted again.
	Lost []Lost
	// Ended had ended; only their record is lost.
	Ended []Lost
}

// Kept hands over the submissions and cancellations that NATS still has from a moment
// on, in order.
type Kept func(ctx context.Context, from time.Time, each func(bus.Delivery) error) error

// Recover compares the streams with the ledger at the begin of a term and brings
// both together. save writes what it did to the book, in more than one transaction
// when that is much.
func (d *Desk) Recover(ctx context.Context, found relay.Found, lastCommit time.Time, kept Kept, now time.Time, save func() error) (r Recovered, err error) {
	if found.Empty() {
		return r, nil
	}
	// Only of these it is known that they were accepted: others may have been refused.
	accepted := map[workload.ID]bool{}
	for _, t := range found.Told {
		accepted[t.ID] = !t.Phase.Final()
	}
	var batch []bus.Delivery
	take := func() error {
		requeued, err := d.takeKept(ctx, batch, now)
		batch = nil
		if err != nil {
			return err
		}
		r.Requeued = append(r.Requeued, requeued...)
		return save()
	}
	err = kept(ctx, lastCommit.Add(-keptMargin), func(m bus.Delivery) error {
		if !wanted(m, accepted) {
			return nil
		}
		if batch = append(batch, m); len(batch) < recoverBatch {
			return nil
		}
		return take()
	})
	if err == nil && len(batch) > 0 {
		err = take()
	}
	if err != nil && !errors.Is(err, bus.ErrNoStream) {
		return r, fmt.Errorf("take in what NATS still has: %w", err)
	}
	return r, d.bringBack(ctx, found, &r, now, save)
}

// wanted reports whether a message is of a workload that was accepted.
func wanted(m bus.Delivery, accepted map[workload.ID]bool) bool {
	_, payload, err := m.Event()
	if err != nil {
		return false // it was given up when it came first
	}
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		return accepted[p.Workload.ID]
	case *event.WorkloadCancel:
		return accepted[p.Workload]
	}
	return false
}

// takeKept takes messages in once more, and returns which workloads are live by it.
func (d *Desk) takeKept(ctx context.Context, batch []bus.Delivery, now time.Time) (requeued []workload.ID, err error) {
	var fresh []workload.ID
	for _, m := range batch {
		if _, payload, err := m.Event(); err == nil {
			if p, ok := payload.(*event.WorkloadSubmitted); ok && !d.Book.Has(p.Workload.ID) {
				fresh = append(fresh, p.Workload.ID)
			}
		}
	}
	if _, err := d.apply(ctx, batch, now); err != nil { // there is nothing to settle
		return nil, err
	}
	return slices.DeleteFunc(fresh, func(id workload.ID) bool { return !d.Book.Has(id) }), nil
}

// bringBack does what the streams have beyond the ledger to the book.
func (d *Desk) bringBack(ctx context.Context, found relay.Found, r *Recovered, now time.Time, save func() error) error {
	ids := make([]workload.ID, len(found.Told))
	for i, t := range found.Told {
		ids[i] = t.ID
	}
	known, err := d.known(ctx, ids)
	if err != nil {
		return err
	}
	ahead := book.Ahead{}
	for _, t := range found.Told {
		ahead.Told = append(ahead.Told, t.Record)
		if _, stored := known[t.ID]; stored || d.Book.Has(t.ID) {
			continue
		}
		if t.Phase.Final() {
			r.Ended = append(r.Ended, Lost(t))
		} else {
			r.Lost = append(r.Lost, Lost(t))
			ahead.Lost = append(ahead.Lost, t.Record)
		}
	}
	for _, c := range found.Commands {
		if c.State != event.Forgotten && !d.Book.Has(c.Workload) {
			r.Removed = append(r.Removed, c)
		}
	}
	for len(found.Commands) > recoverBatch {
		d.Do(journal.Input{Kind: journal.Ahead, At: now, Ahead: &book.Ahead{Commands: found.Commands[:recoverBatch]}})
		found.Commands = found.Commands[recoverBatch:]
		if err := save(); err != nil {
			return err
		}
	}
	ahead.Commands = found.Commands
	if ahead.Empty() {
		return nil
	}
	d.Do(journal.Input{Kind: journal.Ahead, At: now, Ahead: &ahead})
	return save()
}

// recover brings streams and ledger together, before anything else of the term.
func (e *engine) recover(ctx context.Context) error {
	found, err := relay.FindAhead(ctx, e.Store, e.Bus)
	if err != nil {
		return err
	}
	if err := e.refuseNew(ctx, found); err != nil {
		return err
	}
	last, err := e.Store.LastCommit(ctx)
	if err != nil {
		return err
	}
	if !found.Empty() {
		e.Logger.Error("the database has come back older than the streams: bringing both together",
			zap.Int("commands", len(found.Commands)), zap.Int("workloads", len(found.Told)), zap.Time("last commit", last))
	}
	kept := func(ctx context.Context, from time.Time, each func(bus.Delivery) error) error {
		return e.Bus.Since(ctx, bus.KeptStream, bus.KeptFilter(), bus.From{Time: from}, each)
	}
	save := func() error {
		decision, err := e.desk.Take(ctx, nil, false, e.clock.now())
		if err != nil || decision == nil {
			return err
		}
		// What it says is in the outbox, from which the relay begins.
		return e.desk.Write(ctx, decision, func([]store.Outgoing) {})
	}
	r, err := e.desk.Recover(ctx, found, last, kept, e.clock.now(), save)
	if err != nil {
		return err
	}
	e.tellLost(ctx, r)
	return nil
}

// ErrNewDatabase refuses to lead with a database in which nothing is, while NATS
// tells of workloads: all that runs would be removed.
var ErrNewDatabase = errors.New("the database is new")

// refuseNew returns ErrNewDatabase where a new database is rather a wrong one.
func (e *engine) refuseNew(ctx context.Context, found relay.Found) error {
	started := 0
	for _, c := range found.Commands {
		if c.State == event.Present {
			started++
		}
	}
	if started == 0 || e.AcceptNewDatabase {
		return nil
	}
	fresh, err := e.Store.New(ctx)
	if err != nil || !fresh {
		return err
	}
	return fmt.Errorf("%w, but NATS has commands that started %d workloads, which would be removed: "+
		"check database-url, restore a backup, or start with --accept-new-database to remove them", ErrNewDatabase, started)
}

// tellLost names what an operator has to know of.
func (e *engine) tellLost(ctx context.Context, r Recovered) {
	for _, id := range r.Requeued {
		e.Logger.Warn("workload queued again: the database had lost it", zap.String("workload", string(id)))
	}
	for _, c := range r.Removed {
		e.Logger.Warn("objects of no workload are removed: the database has lost their admission", zap.String("workload", string(c.Workload)),
			zap.String("cluster", c.Cluster), zap.String("kind", c.Kind), zap.String("namespace", c.Namespace), zap.String("name", c.Name))
	}
	for _, l := range r.Ended {
		e.Logger.Warn("record lost with the database: the workload had ended", zap.String("workload", string(l.ID)), zap.String("queue", l.Queue),
			zap.String("name", l.Name), zap.String("phase", string(l.Phase)))
		e.Bus.Bury(ctx, l.Delivery, fmt.Sprintf("the database came back older and has no record of %s %s/%s, which had %s", l.Kind, l.Namespace, l.Name, l.Phase))
	}
	for _, l := range r.Lost {
		e.Logger.Error("workload lost with the database: it has to be submitted again", zap.String("workload", string(l.ID)),
			zap.String("queue", l.Queue), zap.String("name", l.Name), zap.Time("submitted", l.Times.Submitted))
		e.Bus.Bury(ctx, l.Delivery, fmt.Sprintf("%s %s/%s of queue %s was %s and is lost: the database came back older, and NATS does not have the submission any more; submit it again",
			l.Kind, l.Namespace, l.Name, l.Queue, l.Phase))
	}
	e.Metrics.recovered.WithLabelValues("requeued").Add(float64(len(r.Requeued)))
	e.Metrics.recovered.WithLabelValues("removed").Add(float64(len(r.Removed)))
	e.Metrics.recovered.WithLabelValues("ended").Add(float64(len(r.Ended)))
	e.Metrics.recovered.WithLabelValues("lost").Add(float64(len(r.Lost)))
}
