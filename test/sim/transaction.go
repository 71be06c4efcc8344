package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// transaction is what waits to be written.
type transaction struct {
	ledger   *ledger
	changes  state.Changes
	outgoing []simhooks.Outgoing
	// shapes are the pod sets that it writes; remember notes them after it.
	shapes   []string
	remember map[string]bool
	// kept reports whether the term that decided keeps a workload out of decisions.
	kept func(workload.ID) bool
	// learned is what was learned of the cost of evictions up to the commit, as text.
	learned string
	real    func(played error, outgoing []simhooks.Outgoing)
}

// prepare makes the transaction of a commit.
func (l *ledger) prepare(changes state.Changes, record simhooks.Record) (*transaction, error) {
	outgoing, err := simhooks.Encode(changes.Messages)
	t := &transaction{ledger: l, changes: changes, outgoing: outgoing, real: l.real.prepare(changes, record)}
	return t, err
}

// write is a simhooks.Transaction.
func (t *transaction) write(context.Context) ([]simhooks.Outgoing, error) {
	err := t.ledger.w.call(postgresServer, "COMMIT", func() error {
		err := t.commit()
		t.real(err, t.outgoing)
		return err
	})
	if err == nil {
		t.ledger.reach(t.changes.Version)
		for _, shape := range t.shapes {
			t.remember[shape] = true
		}
	}
	return t.outgoing, err
}

func (t *transaction) commit() error {
	l, c := t.ledger, t.changes
	if err := l.fence(c.Epoch); err != nil {
		return err
	}
	if c.Empty() {
		if c.Version != l.version && l.w.Bug != BugUnfenced {
			return fmt.Errorf("%w: version %d rests on %d", simhooks.ErrStale, l.version, c.Version)
		}
		return nil
	}
	if c.Version != l.version+1 && l.w.Bug != BugUnfenced {
		return fmt.Errorf("%w: version %d after %d", simhooks.ErrStale, c.Version, l.version)
	}
	for _, shape := range t.shapes {
		l.shapes[shape] = true
	}
	if refused := l.refuses(c); refused != nil {
		return refused
	}
	if refusal := l.guard(c); refusal != nil {
		l.w.breach("G2", "the ledger refuses a commit: %v", refusal)
		return refusal
	}
	before := l.state()
	l.holds = l.pending
	l.w.check.committing(c)
	l.version = c.Version
	l.write(c)
	l.replayed.Commit(l.allAsStored(c))
	for i := range t.outgoing {
		l.seq++
		t.outgoing[i].Seq = l.seq
	}
	if l.w.Bug != BugLostOutbox {
		l.outbox = append(l.outbox, slices.Clone(t.outgoing)...)
	}
	l.w.check.committed(c, t.kept)
	l.w.check.checkLearnedStored(t.learned, c)
	l.w.check.checkPolicy(before, c)
	return nil
}

func (l *ledger) write(c state.Changes) {
	touch := touched{version: c.Version, epoch: c.Epoch, at: l.w.now}
	requests := map[workload.ID]map[string]resource.List{}
	for _, r := range slices.Concat(c.Reserved, c.Replaced) {
		if requests[r.Workload] == nil {
			requests[r.Workload] = map[string]resource.List{}
		}
		requests[r.Workload][r.PodSet] = r.Requests
	}
	for _, r := range c.Updated {
		touch.workloads = append(touch.workloads, r.ID)
		l.keep(asStored(r), 0, nil, requests[r.ID])
	}
	for _, a := range c.Added {
		touch.workloads = append(touch.workloads, a.ID)
		l.keep(asStored(a.Record), a.Order, a.Manifest, requests[a.ID])
	}
	for _, a := range c.Asked {
		l.change(a.Workload, func(r *row) { r.Asked = &a.Asked })
	}
	for _, h := range c.HeardAgain {
		l.change(h.Workload, func(r *row) { r.HeardAgain = h.At.Truncate(time.Microsecond) })
	}
	for _, n := range c.Nodes {
		key := admission.NodeKey{Cluster: n.Cluster, Name: n.Name}
		touch.nodes = append(touch.nodes, key)
		if l.nodes[key] = n; n.Drop {
			delete(l.nodes, key)
		}
	}
	for _, h := range c.History {
		l.history = append(l.history, historyRow{int64(len(l.history) + 1), h})
	}
	l.keepPastUsage(c.PastUsage)
	l.keepLearned(c.Learned)
	l.commits = append(l.commits, touch)
}

// change changes the row of a live workload. A copy of the tables has the old one.
func (l *ledger) change(id workload.ID, how func(*row)) {
	old := l.live[id]
	if old == nil {
		return
	}
	changed := *old
	how(&changed)
	l.live[id] = &changed
}

// keep writes the row of a workload, or moves one that has ended and holds nothing to the
// archive. Order and manifest are of new ones; requests are those of its new reservations, nil
// for none.
func (l *ledger) keep(record workload.Record, order int64, manifest []byte, requests map[string]resource.List) {
	old := l.live[record.ID]
	if old != nil {
		order, manifest = old.Order, old.manifest
	}
	l.lastOrder = max(l.lastOrder, order)
	if record.Phase.Final() && !record.Holding {
		delete(l.live, record.ID)
		l.archive[record.ID] = record
		return
	}
	r := &row{StoredWorkload: state.StoredWorkload{Record: record, Order: order}, manifest: manifest}
	r.Placements = slices.SortedFunc(slices.Values(record.Placements), func(a, b workload.Placement) int {
		return cmp.Or(strings.Compare(a.PodSet, b.PodSet), strings.Compare(a.Node, b.Node))
	})
	if old != nil {
		r.requests, r.Asked, r.HeardAgain = old.requests, old.Asked, old.HeardAgain
	}
	if requests != nil {
		r.requests = requests
	}
	l.live[record.ID] = r
}

// asStored has times as Postgres keeps them, in microseconds.
func asStored(r workload.Record) workload.Record {
	r.MapTimes(func(t time.Time) time.Time { return t.Truncate(time.Microsecond) })
	return r
}
