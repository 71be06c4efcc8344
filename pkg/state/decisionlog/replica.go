package decisionlog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Replica is what the ledger in Postgres has after commits, as far as a term
// begins on it: live workloads and nodes.
type Replica struct {
	// Version of the last commit.
	Version   int64
	workloads map[workload.ID]state.StoredWorkload
	nodes     map[admission.NodeKey]state.StoredNode
}

// NewReplica returns a ledger of nothing at a version.
func NewReplica(version int64) *Replica {
	return &Replica{version, map[workload.ID]state.StoredWorkload{}, map[admission.NodeKey]state.StoredNode{}}
}

// Clone is a copy that goes on by itself.
func (l *Replica) Clone() *Replica {
	return &Replica{l.Version, maps.Clone(l.workloads), maps.Clone(l.nodes)}
}

// Restore takes in a workload as it was read.
func (l *Replica) Restore(w state.StoredWorkload) { l.workloads[w.ID] = w }

// RestoreNode takes in a node as it was read.
func (l *Replica) RestoreNode(n state.StoredNode) {
	l.nodes[admission.NodeKey{Cluster: n.Cluster, Name: n.Name}] = n
}

// Commit takes in changes as Postgres does.
func (l *Replica) Commit(c state.Changes) {
	if c.Empty() {
		return
	}
	l.Version = c.Version
	write := func(r workload.Record, order int64) {
		if r.Phase.Final() && !r.Holding {
			delete(l.workloads, r.ID)
			return
		}
		l.workloads[r.ID] = state.StoredWorkload{Record: asStored(r), Order: order}
	}
	for _, u := range c.Updated {
		write(u, l.workloads[u.ID].Order)
	}
	for _, a := range c.Added {
		write(a.Record, a.Order)
	}
	for _, n := range c.Nodes {
		if n.Drop {
			delete(l.nodes, admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
		} else {
			l.RestoreNode(state.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
		}
	}
}

// asStored is a record as it is read from Postgres: the places in order of pod set
// and node, which decisions and messages follow, and times in microseconds.
func asStored(r workload.Record) workload.Record {
	r.Placements = slices.SortedFunc(slices.Values(r.Placements), func(a, b workload.Placement) int {
		return cmp.Or(cmp.Compare(a.PodSet, b.PodSet), cmp.Compare(a.Node, b.Node))
	})
	for _, t := range []*time.Time{
		&r.NotBefore, &r.EvictAt, &r.Times.Submitted, &r.Times.Admitted, &r.Times.Dispatched, &r.Times.Running, &r.Times.Finished,
	} {
		*t = t.Truncate(time.Microsecond)
	}
	return r
}

// State returns the state of a term that begins on the ledger.
func (l *Replica) State(t Term) *state.State {
	byKey := func(a, b state.StoredNode) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	}
	return t.State(l.Stored(), slices.SortedFunc(maps.Values(l.nodes), byKey))
}

// Stored are the live workloads in the order of their submission.
func (l *Replica) Stored() []state.StoredWorkload {
	return slices.SortedFunc(maps.Values(l.workloads), func(a, b state.StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
}
