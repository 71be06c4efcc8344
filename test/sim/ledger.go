package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// ledger is Postgres: tables that change in one transaction or not at all, with the
// guards of the schema. What a guard refuses is a breach: the state must not decide
// it.
type ledger struct {
	w       *World
	epoch   int64
	holder  string // of the advisory lock
	session int    // of the holder; a dropped one is over
	era     int    // counts how often it was restored to an older state
	beat    time.Time

	version   int64
	lastOrder int64
	live      map[workload.ID]*row
	archive   map[workload.ID]workload.Record
	nodes     map[admission.NodeKey]state.NodeRow
	history   []historyRow
	outbox    []simhooks.Outgoing
	seq       int64
	marks     map[string]simhooks.Watermark
	commits   []touched
	queues    []state.Queue
	policy    quota.Config
	bounds    map[usageKey]int64         // of the quota ledger
	past      map[string]quota.PastUsage // of queues, by name
	rules     policy                     // of a ruled seed, as stored
	first     policy                     // that it began with
	// holds are the reservations, pending what they become by the commit that the
	// guards have just let pass.
	holds, pending map[workload.ID][]hold
	shapes         map[string]bool // the pod sets that are there
	// refused is what the database does not store, until it is mended.
	refused    map[workload.ID]*refusal
	mended     bool
	quarantine map[workload.ID]state.Quarantined
	blamed     map[workload.ID]bool // of which it has refused something
	real       *lockstep            // nil without real tables
	// replayed is what the commits come to for one who has only their records.
	replayed *decisionlog.Replica
	lapse    lapse
}

type row struct {
	state.StoredWorkload
	manifest []byte
	requests map[string]resource.List // of a pod, by pod set, as reserved
}

// historyRow is a row of the history with its number.
type historyRow struct {
	seq int64
	state.HistoryRow
}

type touched struct {
	version   int64
	workloads []workload.ID
	nodes     []admission.NodeKey
	settings  bool // the policy
	epoch     int64
	at        time.Time
}

func newLedger(w *World) *ledger {
	l := &ledger{
		w: w, live: map[workload.ID]*row{}, archive: map[workload.ID]workload.Record{}, nodes: map[admission.NodeKey]state.NodeRow{},
		marks: map[string]simhooks.Watermark{}, queues: w.queues(), replayed: decisionlog.NewReplica(0),
		past: map[string]quota.PastUsage{}, holds: map[workload.ID][]hold{}, shapes: map[string]bool{}, refused: map[workload.ID]*refusal{}, quarantine: map[workload.ID]state.Quarantined{}, blamed: map[workload.ID]bool{},
	}
	if w.ruled() {
		l.first = drawPolicy(rand.New(rand.NewPCG(w.Seed, 4)))
		l.first.generous = w.Bug == BugGenerous
		l.rule(l.first)
	}
	l.real = newLockstep(l, w.Tables)
	return l
}

// leaderTimeout is how long a leader may show no life.
const leaderTimeout = 2 * time.Second

// lock tries to become leader; the epoch is 0 when another leads.
func (l *ledger) lock(m *machine) (before, epoch int64, session int) {
	holder := m.name
	if l.holder != "" && l.w.now.Sub(l.beat) < leaderTimeout {
		return 0, 0, 0
	}
	before = l.epoch
	l.nextEpoch(m, 0)
	l.session++
	l.holder, l.beat, m.reached = holder, l.w.now, 0
	l.real.leads(l.epoch, holder)
	l.w.tell("%s leads, epoch %d", holder, l.epoch)
	return before, l.epoch, l.session
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
		return fmt.Errorf("%w: epoch %d is over, it is %d", simhooks.ErrFenced, epoch, l.epoch)
	}
	return nil
}

// Known implements engine.Archive.
func (l *ledger) Known(_ context.Context, ids []workload.ID) (known map[workload.ID]state.Known, err error) {
	known = map[workload.ID]state.Known{}
	if len(ids) == 0 {
		return known, nil
	}
	return known, l.w.call(postgresServer, "Known", func() error {
		for _, id := range ids {
			if r, ok := l.live[id]; ok {
				known[id] = state.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
			} else if r, ok := l.archive[id]; ok {
				known[id] = state.Known{Digest: r.Digest, Phase: r.Phase, Submitter: r.Submitter}
			}
		}
		return nil
	})
}

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
	real func(played error, outgoing []simhooks.Outgoing)
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
	l.replayed.Commit(l.allAsTold(c))
	for i := range t.outgoing {
		l.seq++
		t.outgoing[i].Seq = l.seq
	}
	if l.w.Bug != BugLostOutbox {
		l.outbox = append(l.outbox, slices.Clone(t.outgoing)...)
	}
	l.w.check.committed(c, t.kept)
	l.w.check.checkPolicy(before, c)
	return nil
}

func (l *ledger) write(c state.Changes) {
	touch := touched{version: c.Version, epoch: c.Epoch, at: l.w.now}
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
		r := &row{StoredWorkload: state.StoredWorkload{Record: record, Order: order}, manifest: manifest}
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
		l.history = append(l.history, historyRow{int64(len(l.history) + 1), h})
	}
	l.keepPastUsage(c.PastUsage)
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
func (l *ledger) load() state.Stored {
	stored := state.Stored{Queues: l.queues, Policy: l.policy, PastUsage: l.pastUsage(), LastOrder: l.lastOrder, Version: l.version, MaxEvent: 1 << 20}
	for _, r := range l.inOrder() {
		w := r.StoredWorkload
		switch l.w.Bug {
		case BugPassing:
			w.Order = l.lastOrder + 1 - w.Order
		case BugLostNomination:
			w.Record = withoutNomination(w.Record)
		}
		w.Record = l.asTold(w.Record)
		stored.Workloads = append(stored.Workloads, w)
	}
	keys := slices.SortedFunc(maps.Keys(l.nodes), compareKeys)
	for _, key := range keys {
		n := l.nodes[key]
		stored.Nodes = append(stored.Nodes, state.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
	}
	return stored
}

func compareKeys(a, b admission.NodeKey) int {
	return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
}

// since returns what the commits after a version have touched, for standbys.
func (l *ledger) since(version int64) state.Delta {
	delta := state.Delta{Version: l.version, LastOrder: l.lastOrder}
	ids, keys := map[workload.ID]bool{}, map[admission.NodeKey]bool{}
	for _, c := range slices.Backward(l.commits) {
		if c.version <= version {
			break
		}
		if c.settings {
			delta.Settings = &state.Settings{Queues: l.queues, Policy: l.policy}
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
			delta.Workloads = append(delta.Workloads, state.StoredWorkload{Record: l.asTold(r.Record), Order: r.Order})
			delete(ids, r.ID)
		}
	}
	delta.Gone = slices.Sorted(maps.Keys(ids))
	for _, key := range slices.SortedFunc(maps.Keys(keys), compareKeys) {
		if n, ok := l.nodes[key]; ok {
			delta.Nodes = append(delta.Nodes, state.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
		} else {
			delta.GoneNodes = append(delta.GoneNodes, key)
		}
	}
	return delta
}
