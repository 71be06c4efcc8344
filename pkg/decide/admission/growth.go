package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Growth is what a started gang asks for beyond its places: more pods of some of its
// pod sets, all or none.
type Growth struct {
	Workload workload.ID
	PodSets  []workload.PodSet // Count is the number of additional pods
	// Order and Since are of the request: the gang waits like one submitted then.
	Order int64
	Since time.Time
	// RunTime is the rest of the declared run time; zero when that is not known.
	RunTime time.Duration
}

// Grow enqueues a request of a started gang for more places, in its cluster and with
// its flavors, in place of an earlier one. The gang keeps its places in any case. The
// request may evict other gangs by the rules for waiting workloads.
func (s *State) Grow(g Growth) {
	started := s.started[g.Workload]
	if started == nil || started.Terminating {
		return
	}
	w := *started.Workload
	w.PodSets = slices.Clone(g.PodSets)
	for i := range w.PodSets {
		w.PodSets[i].MinCount = 0 // it gets all of it or none
	}
	s.Enqueue(Waiting{
		Workload: &w, Order: g.Order, Queue: started.Queue, Since: g.Since, RunTime: g.RunTime, Grows: true,
	})
}

// StopGrowing withdraws the request of a started gang for more places.
func (s *State) StopGrowing(id workload.ID) {
	if w := s.waiting.Get(id); w != nil && w.Grows {
		s.Dequeue(id)
	}
}

// Shrink reduces a started gang to these sizes and places, which are among those it
// has.
func (s *State) Shrink(id workload.ID, sets []workload.PodSet, kept []workload.Placement) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.resize(g, sets, kept, g.Flavors)
	s.noteCapacity(true)
	s.noteQuotaFreed(g.queue)
}

// resize charges a started gang for other sizes and places. It copies the workload,
// which a what-if may share.
func (s *State) resize(g *Started, sets []workload.PodSet, places []workload.Placement, flavors []workload.PodSetFlavors) {
	fleet := s.fleet(g.Cluster)
	fleet.Release(g.Workload, g.Placements)
	g.refund()
	w := *g.Workload
	w.PodSets = sets
	g.Workload, g.Placements, g.Flavors = &w, places, flavors
	g.charges = quota.ChargesOf(sets, flavors)
	g.charge()
	fleet.Allocate(g.Workload, g.Placements)
	g.noteResized()
}
