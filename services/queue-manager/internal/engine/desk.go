package engine

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Ledger is what a term writes to, and asks for what its book has forgotten.
type Ledger interface {
	// Known returns what is stored of workloads, live or finished.
	Known(ctx context.Context, ids []workload.ID) (map[workload.ID]book.Known, error)
	// Prepare makes the transaction that writes the changes and what they were
	// decided on; one of no changes asks whether the leader still is.
	Prepare(changes book.Changes, record store.Record) (Transaction, error)
	// Probe finds what of changes cannot be stored, and writes nothing.
	Probe(ctx context.Context, changes book.Changes, record store.Record) ([]store.Refusal, error)
}

// Transaction is what was decided, ready to be written. It serves once.
type Transaction interface {
	// Write returns the messages that may now leave. After an error the book rests
	// on what may not be there, and is to be thrown away.
	Write(ctx context.Context) ([]store.Outgoing, error)
}

// postgres is the store as a term's ledger.
type postgres struct{ *store.Store }

// prepared is a transaction of the store.
type prepared struct {
	store *store.Store
	*store.Prepared
}

// Prepare implements Ledger.
func (p postgres) Prepare(changes book.Changes, record store.Record) (Transaction, error) {
	ready, err := p.Store.Prepare(changes, record)
	return prepared{p.Store, ready}, err
}

// Write implements Transaction.
func (p prepared) Write(ctx context.Context) ([]store.Outgoing, error) {
	return p.store.Write(ctx, p.Prepared)
}

// Desk is the step of a term: it takes a batch of messages into the book, lets the
// book decide, and has what was decided written before anything of it is settled
// or leaves. It starts no goroutine and reads no clock, so that a simulation can
// drive it as the engine does.
//
// Take and Write may run beside each other, each one call at a time.
type Desk struct {
	Book   *book.Book
	Ledger Ledger
	Logger *zap.Logger
	// Unreadable counts messages that are given up.
	Unreadable prometheus.Counter
	Tracer     tracing.Tracer
	// Unrecorded: decisions are not recorded, because that cannot be stored.
	Unrecorded bool
	// Bury gives a message up and keeps it with the reason.
	Bury func(ctx context.Context, d bus.Delivery, reason string)

	journal journal.Recorder // of what is done to the book
	poison  poison

	mu sync.Mutex
	// ending are the workloads that end in a commit that is not written yet: they
	// are in the book no more, and in Postgres not as ended.
	ending map[workload.ID]book.Known
}

// Decision is a batch that has been decided.
type Decision struct {
	Changes     book.Changes // to count only: the book goes on meanwhile
	Batch       []bus.Delivery
	transaction Transaction
	record      store.Record
	settle      []func()
	traced      spans
}

// Take takes a batch in; decide says whether the book has seen all there is, and
// may decide. It returns nil when there is nothing to write. After an error the
// messages have been given back.
func (d *Desk) Take(ctx context.Context, batch []bus.Delivery, decide bool, now time.Time) (*Decision, error) {
	settle, err := d.apply(ctx, batch, now)
	if err != nil {
		giveBack(batch)
		return nil, err
	}
	if decide {
		d.Do(journal.Input{Kind: journal.Decide, At: now})
	}
	changes := d.Book.Take()
	record := d.record(changes, now)
	if changes.Empty() && record.Inputs == nil && len(settle) == 0 {
		return nil, nil
	}
	traced := d.trace(changes, now)
	transaction, err := d.Ledger.Prepare(changes, record) // an empty one, too: only a leader may settle
	if err != nil {
		giveBack(batch)
		return nil, err
	}
	d.note(changes, true)
	return &Decision{Changes: changes, Batch: batch, transaction: transaction, record: record, settle: settle, traced: traced}, nil
}

// Write writes a decision, lets its messages leave, and settles what came in. After
// an error nothing has been settled or given back.
func (d *Desk) Write(ctx context.Context, decision *Decision, leave func([]store.Outgoing)) error {
	outgoing, err := decision.transaction.Write(ctx)
	decision.traced.end(err)
	if err != nil {
		return err
	}
	leave(outgoing)
	for _, settled := range decision.settle {
		settled()
	}
	d.note(decision.Changes, false)
	return nil
}

// note remembers, or forgets, the workloads that end with the changes.
func (d *Desk) note(changes book.Changes, ending bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	each := func(r workload.Record) {
		switch {
		case !r.Phase.Final() || r.Holding:
		case ending:
			if d.ending == nil {
				d.ending = map[workload.ID]book.Known{}
			}
			d.ending[r.ID] = book.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
		default:
			delete(d.ending, r.ID)
		}
	}
	for _, a := range changes.Added {
		each(a.Record)
	}
	for _, r := range changes.Updated {
		each(r)
	}
}

// known returns what is known of workloads that the book may have forgotten.
func (d *Desk) known(ctx context.Context, ids []workload.ID) (map[workload.ID]book.Known, error) {
	known, err := d.Ledger.Known(ctx, ids)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		if k, ok := d.ending[id]; ok {
			known[id] = k
		}
	}
	return known, nil
}

// giveBack has unsettled messages delivered again to the next term.
func giveBack(batch []bus.Delivery) {
	for _, d := range batch {
		d.Retry(0)
	}
}
