package admission

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Started is a gang that has places: from its admission until its pods have been
// observed gone.
type Started struct {
	Workload   *workload.Workload
	Order      int64 // as of Waiting
	Queue      string
	Cluster    string
	Placements []workload.Placement
	Flavors    []workload.PodSetFlavors
	Admitted   time.Time
	// RunTime is the declared run time, counted from Admitted; zero when none is
	// declared.
	RunTime time.Duration
	// Terminating: it is being torn down or has ended, and keeps its places only until
	// its pods are gone.
	Terminating bool
	// Frozen: it is never evicted.
	Frozen bool
	// Progress is what is known of its work; see State.SetProgress.
	Progress Progress

	queue     *queue
	charges   []quota.Charge
	preempted bool // terminating because of a preemption
}

// Start adds a gang that was admitted before this state was made. Decide adds those
// that it admits.
func (s *State) Start(g Started) {
	added, w := &g, *g.Workload // the caller's may change while it has places
	added.Workload = &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(g.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.charges = quota.ChargesOf(g.Workload.PodSets, g.Flavors)
	s.fleet(g.Cluster).Allocate(g.Workload, g.Placements)
	added.queue.quota.Allocate(added.charges)
	s.started[g.Workload.ID] = added
	added.queue.started[g.Workload.ID] = added
}

// Leave marks a started gang that is being torn down or has ended. It is no candidate
// for preemption any more, and others may count on its places.
func (s *State) Leave(id workload.ID) {
	s.StopGrowing(id)
	if g := s.started[id]; g != nil && !g.Terminating {
		g.Terminating = true
		s.departed++
	}
}

// Freeze keeps a started gang from eviction. Its end counts as unknown.
func (s *State) Freeze(id workload.ID) {
	if g := s.started[id]; g != nil {
		g.Frozen, g.Terminating = true, false
	}
}

// Release frees the places and the quota of a started gang whose pods are gone.
func (s *State) Release(id workload.ID) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.StopGrowing(id)
	delete(s.started, id)
	delete(g.queue.started, id)
	s.releaseAll(g.queue, g.Cluster, g.Workload, g.Placements, g.charges)
	if !g.preempted {
		delete(s.evictedFor, id)
	}
}
