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
func (r *Replica) Clone() *Replica {
	return &Replica{r.Version, maps.Clone(r.workloads), maps.Clone(r.nodes)}
}

// Restore adds a workload as it was read.
func (r *Replica) Restore(w state.StoredWorkload) { r.workloads[w.ID] = w }

// RestoreNode adds a node as it was read.
func (r *Replica) RestoreNode(n state.StoredNode) {
	r.nodes[admission.NodeKey{Cluster: n.Cluster, Name: n.Name}] = n
}

// Commit applies changes as Postgres does.
func (r *Replica) Commit(c state.Changes) {
	if c.Empty() {
		return
	}
	r.Version = c.Version
	write := func(record workload.Record, order int64) {
		if record.Phase.Final() && !record.Holding {
			delete(r.workloads, record.ID)
			return
		}
		old := r.workloads[record.ID]
		r.workloads[record.ID] = state.StoredWorkload{Record: asStored(record), Order: order, Asked: old.Asked, HeardAgain: old.HeardAgain}
	}
	for _, u := range c.Updated {
		write(u, r.workloads[u.ID].Order)
	}
	for _, a := range c.Added {
		write(a.Record, a.Order)
	}
	for _, a := range c.Asked {
		if w, live := r.workloads[a.Workload]; live {
			w.Asked = &a.Asked
			r.workloads[a.Workload] = w
		}
	}
	for _, h := range c.HeardAgain {
		if w, live := r.workloads[h.Workload]; live {
			w.HeardAgain = h.At.Truncate(time.Microsecond)
			r.workloads[h.Workload] = w
		}
	}
	for _, n := range c.Nodes {
		if n.Drop {
			delete(r.nodes, admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
		} else {
			r.RestoreNode(state.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
		}
	}
}

// asStored is a record as it is read from Postgres: the places in order of pod set
// and node, which decisions and messages follow, and times in microseconds.
func asStored(r workload.Record) workload.Record {
	r.Placements = slices.SortedFunc(slices.Values(r.Placements), func(a, b workload.Placement) int {
		return cmp.Or(cmp.Compare(a.PodSet, b.PodSet), cmp.Compare(a.Node, b.Node))
	})
	r.MapTimes(func(t time.Time) time.Time { return t.Truncate(time.Microsecond) })
	return r
}

// State returns the state of a term that begins on the ledger.
func (r *Replica) State(t Term) *state.State { return t.State(r.Stored(), r.Nodes()) }

// Nodes are those of the ledger by cluster and name.
func (r *Replica) Nodes() []state.StoredNode {
	return slices.SortedFunc(maps.Values(r.nodes), func(a, b state.StoredNode) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	})
}

// Stored are the live workloads in the order of their submission.
func (r *Replica) Stored() []state.StoredWorkload {
	return slices.SortedFunc(maps.Values(r.workloads), func(a, b state.StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
}
