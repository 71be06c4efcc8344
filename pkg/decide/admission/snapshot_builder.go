package admission

import (
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// firstMost bounds the workloads of one queue in a snapshot that does not have all of
// them, because only these have to be found in order.
const firstMost = 2500

// SnapshotBuilder makes a snapshot piece by piece, so that the owner of the state can do
// other work between two pieces. The snapshot may have what happens in between or not;
// it has nothing twice.
type SnapshotBuilder struct {
	of         *State
	into       *Snapshot
	clusters   []string // whose nodes are still to be copied
	node       int      // the place of the next node in the first of them
	started    []*Started
	waiting    []*Waiting
	preemptors []workload.ID
}

// BeginSnapshot begins a snapshot with about most waiting workloads, the first of each
// queue. It lists what is to be copied and copies nothing yet.
func (s *State) BeginSnapshot(most int) *SnapshotBuilder {
	b := &SnapshotBuilder{of: s, clusters: append([]string(nil), s.clusters...), into: &Snapshot{
		config: s.tree.Config(), history: make(map[string]quota.History, len(s.sorted)), locals: map[string]quota.History{}, decidedAt: s.decidedAt,
		silent: s.silent, uncleared: s.uncleared, served: s.served, listed: s.listed, namespaces: s.namespaces.clone(), learned: s.learned.clone(),
		evictedFor: newPastEvictions(len(s.evictedFor.victims)),
	}}
	b.started, b.preemptors = make([]*Started, 0, len(s.started)), make([]workload.ID, 0, len(s.evictedFor.victims))
	for preemptor := range s.evictedFor.victims {
		b.preemptors = append(b.preemptors, preemptor)
	}
	for _, past := range s.tree.PastLocal() {
		b.into.locals[past.Queue] = past.History
	}
	each := max(1, most/max(1, len(s.sorted)))
	for _, q := range s.sorted {
		b.into.history[q.name] = q.quota.Past()
		for _, g := range q.started {
			b.started = append(b.started, g)
		}
		b.waiting = append(b.waiting, q.atMost(each)...)
	}
	for _, n := range s.nominations {
		b.waiting = append(b.waiting, n.waiting)
	}
	b.waiting = append(b.waiting, s.asked...)
	b.into.complete = len(b.waiting)+len(s.backingOff)+s.held >= s.waiting.Len()
	return b
}

// atMost returns all waiting workloads of a queue, or the first if there are more.
func (q *queue) atMost(most int) []*Waiting {
	all := 0
	for _, class := range q.all.list {
		all += class.Len()
	}
	if all > most {
		return q.firstWaiting(min(most, firstMost))
	}
	some := make([]*Waiting, 0, all)
	for _, class := range q.all.list {
		some = append(some, class.members...)
	}
	return some
}

// Next copies at most that number of nodes, gangs and waiting workloads. It returns the
// number that it copied and, once all are copied, the snapshot.
func (b *SnapshotBuilder) Next(most int) (copied int, whole *Snapshot) {
	copied = b.copyNodes(most)
	for copied < most && len(b.started) > 0 {
		if g := b.started[0]; b.of.started[g.Workload.ID] == g {
			same := *g
			same.queue, same.charges, same.giving = nil, nil, nil
			b.into.started = append(b.into.started, same)
		}
		b.started, copied = b.started[1:], copied+1
	}
	for copied < most && len(b.preemptors) > 0 {
		victims := b.of.evictedFor.victims[b.preemptors[0]]
		for victim := range victims {
			b.into.evictedFor.add(b.preemptors[0], victim)
		}
		b.preemptors, copied = b.preemptors[1:], copied+1+len(victims)
	}
	for copied < most && len(b.waiting) > 0 {
		if w := b.waiting[0]; b.of.waiting.Has(w) {
			asked := b.of.resubmittedCopy(w)
			asked.Nominated = asked.Nominated || w.class == nil && w.nomination(b.of) != nil
			b.into.waiting = append(b.into.waiting, asked)
		}
		b.waiting, copied = b.waiting[1:], copied+1
	}
	if len(b.clusters)+len(b.started)+len(b.preemptors)+len(b.waiting) > 0 {
		return copied, nil
	}
	return copied, b.into
}

func (b *SnapshotBuilder) copyNodes(most int) (copied int) {
	for copied < most && len(b.clusters) > 0 {
		nodes, next := b.of.fleets[b.clusters[0]].Observed(b.node, most-copied)
		for _, o := range nodes {
			b.into.nodes = append(b.into.nodes, observedNode{o.Node, o.Extra})
		}
		copied += max(1, len(nodes))
		if b.node = next; next < 0 {
			b.clusters, b.node = b.clusters[1:], 0
		}
	}
	return copied
}
