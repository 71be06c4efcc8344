package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/step"
)

// ledger is Postgres: tables that change in one transaction or not at all, with the
// guards of the schema. What a guard refuses is a breach: the book must not decide
// it.
type ledger struct {
	w       *World
	epoch   int64
	holder  string // of the advisory lock
	session int    // of the holder; a dropped one is over
	beat    time.Time

	version   int64
	lastOrder int64
	live      map[workload.ID]*row
	archive   map[workload.ID]workload.Record
	nodes     map[admission.NodeKey]book.NodeRow
	history   []told
	outbox    []step.Outgoing
	seq       int64
	marks     map[string]step.Mark
	commits   []touched
	queues    []book.Queue
	policy    quota.Config
	bounds    map[usageKey]int64 // of the quota ledger
	// holds are the reservations, pending what they become by the commit that the
	// guards have just let pass.
	holds, pending map[workload.ID][]hold
	shapes         map[string]bool // the pod sets that are there
	// replayed is what the commits come to for one who has only their records.
	replayed *journal.Ledger
}

type row struct {
	book.StoredWorkload
	manifest []byte
	requests map[string]resource.List // of a pod, by pod set, as reserved
}

type told struct {
	seq int64
	book.HistoryRow
}

type touched struct {
	version   int64
	workloads []workload.ID
	nodes     []admission.NodeKey
}

func newLedger(w *World) *ledger {
	return &ledger{
		w: w, live: map[workload.ID]*row{}, archive: map[workload.ID]workload.Record{}, nodes: map[admission.NodeKey]book.NodeRow{},
		marks: map[string]step.Mark{}, queues: queues(), replayed: journal.NewLedger(0),
		holds: map[workload.ID][]hold{}, shapes: map[string]bool{},
	}
}

// leaderTimeout is how long a leader may show no life.
const leaderTimeout = 2 * time.Second

// lock tries to become leader; the epoch is 0 when somebody else leads.
func (l *ledger) lock(holder string) (epoch int64, session int) {
	if l.holder != "" && l.w.now.Sub(l.beat) < leaderTimeout {
		return 0, 0
	}
	least, step := step.NextEpoch(l.w.now, 0, l.w.random.Uint64())
	l.epoch = max(l.epoch, least) + step
	l.session++
	l.holder, l.beat = holder, l.w.now
	l.w.tell("%s leads, epoch %d", holder, l.epoch)
	return l.epoch, l.session
}

// alive is the beat of a leader; an error when its session is over.
func (l *ledger) alive(session int) error {
	if l.session != session || l.w.now.Sub(l.beat) >= leaderTimeout {
		return errLost
	}
	l.beat = l.w.now
	return nil
}

// unlock ends a session.
func (l *ledger) unlock(session int) {
	if l.session == session {
		l.holder = ""
	}
}

// dropSession ends the leader's session, as a restart of Postgres does.
func (l *ledger) dropSession() {
	l.session++
	l.holder = ""
}

func (l *ledger) fence(epoch int64) error {
	if epoch != l.epoch && l.w.Bug != BugUnfenced {
		return fmt.Errorf("%w: epoch %d is over, it is %d", step.ErrFenced, epoch, l.epoch)
	}
	return nil
}

// Known implements step.Ledger.
func (l *ledger) Known(_ context.Context, ids []workload.ID) (known map[workload.ID]book.Known, err error) {
	known = map[workload.ID]book.Known{}
	if len(ids) == 0 {
		return known, nil
	}
	return known, l.w.call(postgresServer, "Known", func() error {
		for _, id := range ids {
			if r, ok := l.live[id]; ok {
				known[id] = book.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
			} else if r, ok := l.archive[id]; ok {
				known[id] = book.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
			}
		}
		return nil
	})
}

// transaction is what waits to be written.
type transaction struct {
	ledger   *ledger
	changes  book.Changes
	outgoing []step.Outgoing
	// shapes are the pod sets that it writes; remember notes them after it.
	shapes   []string
	remember map[string]bool
}

// Prepare implements step.Ledger.
func (l *ledger) Prepare(changes book.Changes, _ step.Record) (step.Transaction, error) {
	outgoing, err := step.Encode(changes.Messages)
	return &transaction{ledger: l, changes: changes, outgoing: outgoing}, err
}

// Probe implements step.Ledger: nothing is refused here.
func (l *ledger) Probe(context.Context, book.Changes, step.Record) ([]step.Refusal, error) {
	return nil, nil
}

// Write implements step.Transaction.
func (t *transaction) Write(context.Context) ([]step.Outgoing, error) {
	err := t.ledger.w.call(postgresServer, "COMMIT", t.commit)
	if err == nil {
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
			return fmt.Errorf("%w: version %d rests on %d", step.ErrStale, l.version, c.Version)
		}
		return nil
	}
	if c.Version != l.version+1 && l.w.Bug != BugUnfenced {
		return fmt.Errorf("%w: version %d after %d", step.ErrStale, c.Version, l.version)
	}
	for _, shape := range t.shapes {
		l.shapes[shape] = true
	}
	if refusal := l.guard(c); refusal != nil {
		l.w.breach("G2", "the ledger refuses a commit: %v", refusal)
		return refusal
	}
	l.holds = l.pending
	l.w.check.committing(c)
	l.version = c.Version
	l.write(c)
	l.replayed.Commit(c)
	for i := range t.outgoing {
		l.seq++
		t.outgoing[i].Seq = l.seq
	}
	if l.w.Bug != BugLostOutbox {
		l.outbox = append(l.outbox, slices.Clone(t.outgoing)...)
	}
	l.w.check.committed(c)
	return nil
}

func (l *ledger) write(c book.Changes) {
	touch := touched{version: c.Version}
	places := map[workload.ID]bool{}
	requests := map[workload.ID]map[string]resource.List{}
	for _, r := range slices.Concat(c.Reserved, c.Moved) {
		places[r.Workload] = true
		if requests[r.Workload] == nil {
			requests[r.Workload] = map[string]resource.List{}
		}
		requests[r.Workload][r.PodSet] = r.Requests
	}
	keep := func(record workload.Record, order int64, manifest []byte) {
		record = asStored(record)
		touch.workloads = append(touch.workloads, record.ID)
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
		r := &row{StoredWorkload: book.StoredWorkload{Record: record, Order: order}, manifest: manifest}
		r.Placements = slices.SortedFunc(slices.Values(record.Placements), func(a, b workload.Placement) int {
			return cmp.Or(strings.Compare(a.PodSet, b.PodSet), strings.Compare(a.Node, b.Node))
		})
		if old != nil {
			r.requests = old.requests
		}
		if places[record.ID] {
			r.requests = requests[record.ID]
		}
		l.live[record.ID] = r
	}
	for _, r := range c.Updated {
		keep(r, 0, nil)
	}
	for _, a := range c.Added {
		keep(a.Record, a.Order, a.Manifest)
	}
	for _, n := range c.Nodes {
		key := admission.NodeKey{Cluster: n.Cluster, Name: n.Name}
		touch.nodes = append(touch.nodes, key)
		if l.nodes[key] = n; n.Drop {
			delete(l.nodes, key)
		}
	}
	for _, h := range c.History {
		l.history = append(l.history, told{int64(len(l.history) + 1), h})
	}
	l.commits = append(l.commits, touch)
}

// asStored has times as Postgres keeps them, in microseconds.
func asStored(r workload.Record) workload.Record {
	for _, t := range []*time.Time{
		&r.NotBefore, &r.EvictAt, &r.Times.Submitted, &r.Times.Admitted, &r.Times.Dispatched, &r.Times.Running, &r.Times.Finished,
	} {
		*t = t.Truncate(time.Microsecond)
	}
	return r
}

// inOrder lists the live workloads in the order of submission.
func (l *ledger) inOrder() []*row {
	return slices.SortedFunc(maps.Values(l.live), func(a, b *row) int { return cmp.Compare(a.Order, b.Order) })
}

// load reads what a term begins with.
func (l *ledger) load() book.Stored {
	stored := book.Stored{Queues: l.queues, Policy: l.policy, LastOrder: l.lastOrder, Version: l.version, MaxEvent: 1 << 20}
	for _, r := range l.inOrder() {
		w := r.StoredWorkload
		if l.w.Bug == BugPassing {
			w.Order = l.lastOrder + 1 - w.Order
		}
		stored.Workloads = append(stored.Workloads, w)
	}
	keys := slices.SortedFunc(maps.Keys(l.nodes), compareKeys)
	for _, key := range keys {
		n := l.nodes[key]
		stored.Nodes = append(stored.Nodes, book.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
	}
	return stored
}

func compareKeys(a, b admission.NodeKey) int {
	return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
}

// since returns what the commits after a version have touched, for standbys.
func (l *ledger) since(version int64) book.Delta {
	delta := book.Delta{Version: l.version, LastOrder: l.lastOrder}
	ids, keys := map[workload.ID]bool{}, map[admission.NodeKey]bool{}
	for _, c := range slices.Backward(l.commits) {
		if c.version <= version {
			break
		}
		for _, id := range c.workloads {
			ids[id] = true
		}
		for _, key := range c.nodes {
			keys[key] = true
		}
	}
	for _, r := range l.inOrder() {
		if ids[r.ID] {
			delta.Workloads = append(delta.Workloads, r.StoredWorkload)
			delete(ids, r.ID)
		}
	}
	delta.Gone = slices.Sorted(maps.Keys(ids))
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		if n, ok := l.nodes[key]; ok {
			delta.Nodes = append(delta.Nodes, book.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
		} else {
			delta.GoneNodes = append(delta.GoneNodes, key)
		}
	}
	return delta
}
