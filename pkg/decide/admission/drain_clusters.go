package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// drained returns the gangs that have to leave their clusters, by falling priority, then by
// submission: in this order they are evicted, and wait for places elsewhere.
func (s *State) drained() []*Started {
	var gangs []*Started
	for _, g := range s.started {
		if s.mustLeave(g) {
			gangs = append(gangs, g)
		}
	}
	slices.SortFunc(gangs, func(a, b *Started) int {
		return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
	})
	return gangs
}

// mustLeave reports whether a gang is to be evicted from its cluster. In a cluster that has left
// by force package state releases the places of gangs, some at a time.
func (s *State) mustLeave(g *Started) bool {
	cordon := s.tree.Cordon(g.Cluster)
	return cordon != nil && cordon.Drain && !cordon.Forced && !g.Terminating && !g.Frozen
}

// mustDrainClusters reports whether a gang has to leave its cluster.
func (s *State) mustDrainClusters() bool {
	if !s.tree.Drains() {
		return false
	}
	for _, g := range s.started {
		if s.mustLeave(g) {
			return true
		}
	}
	return false
}

// drainClusters evicts the gangs of drained clusters.
func (d *decision) drainClusters() {
	if !d.state.tree.Drains() {
		return
	}
	for _, g := range d.state.drained() {
		d.evict(g, workload.Reason{Kind: workload.ReasonDrained, Message: d.state.tree.Cordon(g.Cluster).Message()})
	}
}
