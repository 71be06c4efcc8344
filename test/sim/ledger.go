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

	version     int64
	lastOrder   int64
	live        map[workload.ID]*row
	archive     map[workload.ID]workload.Record
	nodes       map[admission.NodeKey]state.NodeRow
	history     []historyRow
	outbox      []simhooks.Outgoing
	seq         int64
	watermarks  map[string]simhooks.Watermark
	commits     []touched
	queues      []state.Queue
	policy      quota.Config
	bounds      map[usageKey]int64         // of the quota ledger
	past        map[string]quota.PastUsage // of queues, by name
	learned     map[admission.LearnedKey]admission.Learned
	rules       policy           // of a ruled seed, as stored
	first       policy           // that it began with
	scaledQuota map[string]int64 // of the queues of a scaled seed
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
		watermarks: map[string]simhooks.Watermark{}, queues: w.queues(), replayed: decisionlog.NewReplica(0),
		past: map[string]quota.PastUsage{}, learned: map[admission.LearnedKey]admission.Learned{}, holds: map[workload.ID][]hold{}, shapes: map[string]bool{}, refused: map[workload.ID]*refusal{}, quarantine: map[workload.ID]state.Quarantined{}, blamed: map[workload.ID]bool{},
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
	l.w.narrate("%s leads, epoch %d", holder, l.epoch)
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

// inOrder lists the live workloads in the order of submission.
func (l *ledger) inOrder() []*row {
	return slices.SortedFunc(maps.Values(l.live), func(a, b *row) int { return cmp.Compare(a.Order, b.Order) })
}

// load reads what a term begins with.
func (l *ledger) load() state.Stored {
	stored := state.Stored{Queues: l.queues, Policy: l.policy, PastUsage: l.pastUsage(), Learned: l.allLearned(), LastOrder: l.lastOrder, Version: l.version, MaxEvent: 1 << 20}
	for _, r := range l.inOrder() {
		w := r.StoredWorkload
		switch l.w.Bug {
		case BugPassing:
			w.Order = l.lastOrder + 1 - w.Order
		case BugLostNomination:
			w.Record = withoutNomination(w.Record)
		case BugForgottenHold:
			w.Hold = nil
		}
		w.Record = l.asStored(w.Record)
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
			delta.Workloads = append(delta.Workloads, state.StoredWorkload{Record: l.asStored(r.Record), Order: r.Order, Asked: r.Asked, HeardAgain: r.HeardAgain})
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
