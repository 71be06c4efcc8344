package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/workload"
)

// Ledger is what the ledger in Postgres has after commits, as far as a term
// begins on it: live workloads and nodes.
type Ledger struct {
	// Version of the last commit.
	Version   int64
	workloads map[workload.ID]book.StoredWorkload
	nodes     map[admission.NodeKey]book.StoredNode
}

// NewLedger returns a ledger of nothing at a version.
func NewLedger(version int64) *Ledger {
	return &Ledger{version, map[workload.ID]book.StoredWorkload{}, map[admission.NodeKey]book.StoredNode{}}
}

// Restore takes in a workload as it was read.
func (l *Ledger) Restore(w book.StoredWorkload) { l.workloads[w.ID] = w }

// RestoreNode takes in a node as it was read.
func (l *Ledger) RestoreNode(n book.StoredNode) {
	l.nodes[admission.NodeKey{Cluster: n.Cluster, Name: n.Name}] = n
}

// Commit takes in changes as Postgres does.
func (l *Ledger) Commit(c book.Changes) {
	if c.Empty() {
		return
	}
	l.Version = c.Version
	write := func(r workload.Record, order int64) {
		if r.Phase.Final() && !r.Holding {
			delete(l.workloads, r.ID)
			return
		}
		l.workloads[r.ID] = book.StoredWorkload{Record: asStored(r), Order: order}
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
			l.RestoreNode(book.StoredNode{Node: n.Node, Version: n.Version, Present: n.Present})
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

// Book returns the book of a term that begins on the ledger.
func (l *Ledger) Book(t Term) *book.Book {
	byKey := func(a, b book.StoredNode) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
	}
	return t.Book(l.Stored(), slices.SortedFunc(maps.Values(l.nodes), byKey))
}

// Stored are the live workloads in the order of their submission.
func (l *Ledger) Stored() []book.StoredWorkload {
	return slices.SortedFunc(maps.Values(l.workloads), func(a, b book.StoredWorkload) int { return cmp.Compare(a.Order, b.Order) })
}
