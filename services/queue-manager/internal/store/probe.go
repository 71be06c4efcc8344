package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// ErrEverything is wrapped by Probe when the database refuses a workload that was
// made up for the purpose, too: then no workload is to blame.
var ErrEverything = errors.New("the database refuses every workload")

// Part is what of a commit was refused.
type Part string

// The parts, in the order in which they are written.
const (
	PartRecord    Part = "the record of the decision"
	PartCommit    Part = "the note of what a commit touches"
	PartPastUsage Part = "the past usage of a queue"
	PartLearned   Part = "what was learned of the cost of evictions"
	PartNode      Part = "a node"
	PartRelease   Part = "giving back of places"
	PartEnd       Part = "the end of a workload"
	PartAdded     Part = "a new workload"
	PartPlaces    Part = "the state and places of a workload"
	PartCharges   Part = "what a workload uses of quota"
	PartAsked     Part = "the last requests of a workload"
	PartHeard     Part = "when the cluster of a workload was heard again"
	PartHistory   Part = "the history of a workload"
	PartMessage   Part = "a message about a workload"
)

// Refusal is something of a commit that the database does not store.
type Refusal struct {
	Part
	// Workload, or node, that it is about; neither for PartRecord, PartPastUsage and PartLearned. A
	// node is to blame for PartPlaces when no workload gets a place there.
	Workload workload.ID
	Node     admission.NodeKey
	// Scope of quota in which nothing can be used; of PartCharges.
	Scope string
	Cause error
}

// probeTimeout bounds the search for what cannot be stored. It is longer for what should pass by
// waiting: each statement that takes too long takes all of the time that statements have.
const (
	probeTimeout           = 30 * time.Second
	persistentProbeTimeout = 5 * time.Minute
)

// Probe finds what of changes the database refuses. It writes them part by part
// in a transaction that it rolls back, and halves what is refused. Of the first
// part with refusals it returns all; what comes later may be refused because of
// them only. None means that all of it can be stored now. An error with the SQLSTATE passing,
// which should pass by waiting and does not, counts as a refusal, too.
func (s *Store) Probe(ctx context.Context, changes state.Changes, record Record, passing string) (refused []Refusal, err error) {
	most := probeTimeout
	if passing != "" {
		most = persistentProbeTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what cannot be stored: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	p := &probe{store: s, tx: tx, epoch: changes.Epoch, passing: passing}
	if refused, err = p.run(ctx, changes, record); err != nil {
		return nil, fmt.Errorf("look for what cannot be stored: %w", err)
	}
	return refused, nil
}

// probe tries changes in a transaction.
type probe struct {
	store   *Store
	tx      pgx.Tx
	epoch   int64
	version int64  // the one after the last
	queue   string // a queue that takes what is made up; empty for none
	passing string // counts as a refusal, too; empty for none
	refused []Refusal
	passed  error // for which something could not be tried
}

func (p *probe) run(ctx context.Context, changes state.Changes, record Record) ([]Refusal, error) {
	begin := newBatch(p.epoch)
	begin.Queue(`SET CONSTRAINTS ALL IMMEDIATE`)
	begin.Queue(`SELECT coalesce(max(version), 0) + 1 FROM commits`).QueryRow(func(row pgx.Row) error { return row.Scan(&p.version) })
	if err := p.tx.SendBatch(ctx, begin).Close(); err != nil {
		return nil, err
	}
	if err := p.sample(ctx); err != nil {
		return nil, err
	}
	err := p.try(ctx, changes, record)
	return p.refused, err
}

// try tries all parts in order until one has refusals.
func (p *probe) try(ctx context.Context, c state.Changes, record Record) error {
	if record.Inputs != nil {
		if err := probePart(ctx, p, PartRecord, []Record{record}, func(b *pgx.Batch, r []Record) { queueRecord(b, c, r[0]) },
			func(Record) Refusal { return Refusal{} }); err != nil || len(p.refused) > 0 {
			return err
		}
	}
	for _, part := range []func(context.Context, state.Changes) error{
		p.commit, p.pastUsage, p.learned, p.nodes, p.released, p.ended, p.added, p.places, p.asked, p.heard, p.dropped, p.history, p.messages,
	} {
		if err := part(ctx, c); err != nil || len(p.refused) > 0 {
			return err
		}
		if p.passed != nil {
			return p.passed
		}
	}
	return nil
}

// probePart tries one part, halves what is refused, and leaves written what is not.
func probePart[T any](ctx context.Context, p *probe, part Part, items []T, queue func(*pgx.Batch, []T), of func(T) Refusal) error {
	if len(items) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	batch.Queue(`SAVEPOINT part`)
	queue(batch, items)
	batch.Queue(`RELEASE SAVEPOINT part`)
	cause := p.tx.SendBatch(ctx, batch).Close()
	if cause == nil {
		return nil
	}
	if !Suspect(cause) && Passing(cause) == "" {
		return cause
	}
	if _, err := p.tx.Exec(ctx, `ROLLBACK TO SAVEPOINT part`); err != nil {
		return errors.Join(cause, err)
	}
	if half := len(items) / 2; half > 0 {
		if err := probePart(ctx, p, part, items[:half], queue, of); err != nil {
			return err
		}
		return probePart(ctx, p, part, items[half:], queue, of)
	}
	if !Suspect(cause) && Passing(cause) != p.passing {
		p.passed = cause
		return nil
	}
	refusal := of(items[0])
	refusal.Part, refusal.Cause = part, cause
	p.refused = append(p.refused, refusal)
	return nil
}

// undone queues statements, and takes back what they have written.
func undone(batch *pgx.Batch, queue func()) {
	batch.Queue(`SAVEPOINT undone`)
	queue()
	batch.Queue(`ROLLBACK TO SAVEPOINT undone`)
}
