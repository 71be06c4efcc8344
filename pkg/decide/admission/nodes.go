package admission

import (
	"maps"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// NodeKey names a node of a cluster.
type NodeKey struct {
	Cluster, Name string
}

// addDemand adds the pods of a waiting workload to the demand by which fleets pack, and
// removeDemand takes them out. Started and nominated gangs count by their placements.
func (s *State) addDemand(w *Waiting) {
	s.expect(w.signature, 1)
}

func (s *State) removeDemand(w *Waiting) {
	s.expect(w.signature, -1)
}

func (s *State) expect(sig *podSetSignature, gangs int) {
	for cluster, fleet := range s.fleets {
		if sig.mayBeOn(cluster) {
			fleet.Expect(sig.demand, gangs)
		}
	}
}

// SetCluster records that a cluster has listed its nodes. It may have none, and then nodes can be
// asked for there; of a cluster that has not, none may be known yet.
func (s *State) SetCluster(name string) {
	if s.listed[name] {
		return
	}
	s.fleet(name)
	s.listed = maps.Clone(s.listed)
	if s.listed == nil {
		s.listed = map[string]bool{}
	}
	s.listed[name], s.events.clusterAdded, s.events.namespaces, s.events.ranges.all = true, true, true, true
}

// SetNode adds a node or replaces what is observed of it.
func (s *State) SetNode(n capacity.Node) {
	fleet := s.fleet(n.Cluster)
	if fleet.Len() == 0 {
		s.events.clusterAdded, s.events.namespaces, s.events.ranges.all = true, true, true
	}
	before, was := fleet.Node(n.Name)
	s.noteCapacity(fleet.SetNode(n))
	s.noteCreated(n.Cluster, before.Created, n.Created)
	s.noteOffer(NodeKey{n.Cluster, n.Name}, before, was)
	s.resizeNode(NodeKey{n.Cluster, n.Name}, n.Allocatable)
}

// RemoveNode removes a node. The places of gangs on it stay allocated, in case it
// comes back.
func (s *State) RemoveNode(key NodeKey) {
	if fleet := s.fleets[key.Cluster]; fleet != nil {
		before, was := fleet.Node(key.Name)
		fleet.RemoveNode(key.Name)
		s.noteCreated(key.Cluster, before.Created, time.Time{})
		s.noteOffer(key, before, was)
		s.resizeNode(key, nil)
	}
}

// noteCreated keeps when the youngest node of a cluster was created, after one of them has another
// age, has come or is gone. It follows from the nodes that are there: a state that is loaded decides
// the same.
func (s *State) noteCreated(cluster string, before, now time.Time) {
	newest := s.newest[cluster]
	switch {
	case now.After(newest):
		newest = now
	case now.Equal(before) || before.Before(newest):
		return
	default: // it was the youngest
		newest = time.Time{}
		s.fleets[cluster].Where(func(n *capacity.Node) bool {
			if n.Created.After(newest) {
				newest = n.Created
			}
			return false
		})
	}
	s.newest = maps.Clone(s.newest) // copies of the state share the old one
	if s.newest == nil {
		s.newest = map[string]time.Time{}
	}
	s.newest[cluster] = newest
}

// resizeNode updates the sum of all nodes. Shares of a resource without quota are
// fractions of that sum, so a smaller one can make a share too large.
func (s *State) resizeNode(key NodeKey, allocatable resource.List) {
	s.total = s.total.Minus(s.nodeSizes[key]).Plus(allocatable)
	if allocatable == nil {
		delete(s.nodeSizes, key)
	} else {
		s.nodeSizes[key] = allocatable
	}
	s.events.shareBaseChanged = s.tree.SetCapacity(s.total) || s.events.shareBaseChanged
}

// SetExtra sets what pods of gangs use of a node beyond their placements.
func (s *State) SetExtra(key NodeKey, amounts resource.List) {
	s.noteCapacity(s.fleet(key.Cluster).SetExtra(key.Name, amounts))
}

func (s *State) releaseAll(q *queue, cluster string, w *workload.Workload, places []workload.Placement, charges []quota.Charge) {
	s.fleet(cluster).Release(w, places)
	q.quota.Release(charges)
	s.noteCapacity(true)
	s.noteQuotaFreed(q)
}
