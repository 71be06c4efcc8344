package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// commit tries the note of a commit for each workload and each node that it touches. A version is
// there once, so that no note may stay.
func (p *probe) commit(ctx context.Context, c state.Changes) error {
	touched := slices.Clone(c.Updated)
	for _, a := range c.Added {
		touched = append(touched, a.Record)
	}
	err := probePart(ctx, p, PartCommit, touched, func(b *pgx.Batch, some []workload.Record) {
		undone(b, func() { queueVersion(b, state.Changes{Epoch: p.epoch, Version: p.version, Updated: some}) })
	}, func(r workload.Record) Refusal { return ofWorkload(r.ID) })
	if err != nil {
		return err
	}
	return probePart(ctx, p, PartCommit, c.Nodes, func(b *pgx.Batch, some []state.NodeRow) {
		undone(b, func() { queueVersion(b, state.Changes{Epoch: p.epoch, Version: p.version, Nodes: some}) })
	}, ofNode)
}

func (p *probe) pastUsage(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartPastUsage, c.PastUsage, queuePastUsage, func(quota.PastUsage) Refusal { return Refusal{} })
}

func (p *probe) learned(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartLearned, c.Learned, queueLearned, func(admission.Learned) Refusal { return Refusal{} })
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

func (p *probe) asked(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartAsked, c.Asked, queueAsked, func(a state.Asked) Refusal { return ofWorkload(a.Workload) })
}

func (p *probe) heard(ctx context.Context, c state.Changes) error {
	return probePart(ctx, p, PartHeard, c.HeardAgain, queueHeardAgain, func(h state.HeardAgain) Refusal { return ofWorkload(h.Workload) })
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
