package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
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
	PartPastUsage Part = "the past usage of a queue"
	PartNode      Part = "a node"
	PartRelease   Part = "giving back of places"
	PartEnd       Part = "the end of a workload"
	PartAdded     Part = "a new workload"
	PartPlaces    Part = "the state and places of a workload"
	PartHistory   Part = "the history of a workload"
	PartMessage   Part = "a message about a workload"
)

// Refusal is something of a commit that the database does not store.
type Refusal struct {
	Part
	// Workload, or node, that it is about; neither for PartRecord and PartPastUsage.
	Workload workload.ID
	Node     admission.NodeKey
	Cause    error
}

// probeTimeout bounds the search for what cannot be stored.
const probeTimeout = 30 * time.Second

// Probe finds what of changes the database refuses. It writes them part by part
// in a transaction that it rolls back, and halves what is refused. Of the first
// part with refusals it returns all; what comes later may be refused because of
// them only. None means that all of it can be stored now.
func (s *Store) Probe(ctx context.Context, changes state.Changes, record Record) (refused []Refusal, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for what cannot be stored: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	p := &probe{store: s, tx: tx, epoch: changes.Epoch}
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
	refused []Refusal
}

func (p *probe) run(ctx context.Context, changes state.Changes, record Record) ([]Refusal, error) {
	begin := newBatch(p.epoch)
	begin.Queue(`SET CONSTRAINTS ALL IMMEDIATE`)
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
		p.pastUsage, p.nodes, p.released, p.ended, p.added, p.places, p.dropped, p.history, p.messages,
	} {
		if err := part(ctx, c); err != nil || len(p.refused) > 0 {
			return err
		}
	}
	return nil
}

func (p *probe) pastUsage(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartPastUsage, c.PastUsage, queuePastUsage, func(quota.PastUsage) Refusal { return Refusal{} })
}

func (p *probe) nodes(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartNode, c.Nodes, queueNodes, ofNode)
}

func ofNode(n state.NodeRow) Refusal {
	return Refusal{Node: admission.NodeKey{Cluster: n.Cluster, Name: n.Name}}
}

func (p *probe) released(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartRelease, slices.Concat(c.Freed, replacedLive(c)), queueRelease, ofWorkload)
}

func ofWorkload(id workload.ID) Refusal { return Refusal{Workload: id} }

func (p *probe) ended(ctx context.Context, c state.Changes) error {
	var ended []archived
	for _, r := range c.Updated {
		if isCold(r) {
			ended = append(ended, archived{Record: r})
		}
	}
	for _, a := range c.Added {
		if isCold(a.Record) {
			ended = append(ended, archived{a.Record, a.Order, a.Manifest})
		}
	}
	return probePart(ctx, p, PartEnd, ended, queueFinished, func(a archived) Refusal { return ofWorkload(a.ID) })
}

// unknownEpoch is of no term: nothing is remembered of it.
const unknownEpoch = -1

// added tries new workloads as if they waited, so that a refused admission is distinguished
// from a refused submission.
func (p *probe) added(ctx context.Context, c state.Changes) error {
	waiting := slices.DeleteFunc(slices.Clone(c.Added), func(a state.Added) bool { return isCold(a.Record) })
	for i := range waiting {
		r := &waiting[i].Record
		r.Phase, r.Holding, r.Cluster, r.Flavors, r.Placements = workload.Queued, false, "", nil, nil
	}
	return probePart(ctx, p, PartAdded, waiting, func(b *pgx.Batch, some []state.Added) {
		rows := make([]row, len(some))
		for i, a := range some {
			rows[i] = newRow(a.Record, a.Order)
		}
		queueManifests(b, some)
		p.store.queueShapes(b, unknownEpoch, rows)
		queueLive(b, rows, nil, nil)
	}, func(a state.Added) Refusal { return ofWorkload(a.ID) })
}

// places tries the state of live workloads with their places.
func (p *probe) places(ctx context.Context, c state.Changes) error {
	live := slices.Clone(c.Updated)
	for _, a := range c.Added {
		live = append(live, a.Record)
	}
	live = slices.DeleteFunc(live, isCold)
	of := map[workload.ID][]state.Reservation{}
	for _, r := range slices.Concat(c.Reserved, c.Replaced) {
		of[r.Workload] = append(of[r.Workload], r)
	}
	return probePart(ctx, p, PartPlaces, live, func(b *pgx.Batch, some []workload.Record) {
		rows := make([]row, len(some))
		var reserved []state.Reservation
		for i, r := range some {
			rows[i] = newRow(r, 0)
			reserved = append(reserved, of[r.ID]...)
		}
		p.store.queueShapes(b, unknownEpoch, rows)
		queueLive(b, nil, rows, reserved)
	}, func(r workload.Record) Refusal { return ofWorkload(r.ID) })
}

func (p *probe) dropped(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartNode, c.Nodes, queueDropped, ofNode)
}

func (p *probe) history(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartHistory, c.History, func(b *pgx.Batch, some []state.HistoryRow) {
		queueHistory(b, state.Changes{Epoch: c.Epoch, Version: c.Version, History: some})
	}, func(h state.HistoryRow) Refusal { return ofWorkload(h.Workload) })
}

func (p *probe) messages(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartMessage, c.Messages, func(b *pgx.Batch, some []state.Message) {
		if outgoing, err := Encode(some); err == nil { // Prepare has encoded them before
			queueOutbox(b, outgoing)
		}
	}, func(m state.Message) Refusal { return ofWorkload(workload.ID(m.Payload.CloudEventSubject())) })
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
	if !Suspect(cause) {
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
	refusal := of(items[0])
	refusal.Part, refusal.Cause = part, cause
	p.refused = append(p.refused, refusal)
	return nil
}
