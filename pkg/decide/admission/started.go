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

	queue   *queue
	charges []quota.Charge
	// whole is, of a part that a gang gives up, the gang; else nil.
	whole *Started
	// giving is the part that the gang gives up until its pods are gone, and leaves has how
	// many pods of each of these sets then stay.
	giving    *Started
	leaves    map[string]int
	preempted bool // terminating because of a preemption
}

// Start adds a gang that was admitted before this state was made. Decide adds those
// that it admits.
func (s *State) Start(g Started) {
	added, w := &g, *g.Workload // the caller's may change while it has places
	added.giving, added.leaves = nil, nil
	added.Workload = &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(g.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.charges = quota.ChargesOf(g.Workload.PodSets, g.Flavors)
	s.fleet(g.Cluster).Allocate(g.Workload, g.Placements)
	added.charge()
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

// SetPriority changes the priority of a started gang, and of its request for more places. A
// waiting workload is enqueued again instead. Evictions in the past, which kept the gang and
// others from evicting each other twice, do not count any more.
func (s *State) SetPriority(id workload.ID, priority int32) {
	s.evictedFor.forget(id)
	g := s.started[id]
	if g == nil {
		return
	}
	w := *g.Workload // a what-if may share it
	w.Priority = priority
	g.Workload = &w
	if asks := s.waiting.Get(id); asks != nil && asks.Grows {
		again, grown := asks.resubmitted(s), *asks.Workload
		grown.Priority = priority
		again.Workload, again.Reported = &grown, false
		s.Enqueue(again)
	}
	s.departed++ // what was hopeless may not be now
	s.noteQuotaFreed(g.queue)
	for _, q := range s.sorted {
		if q.quota.Preemption == nil || !q.quota.SameTree(g.queue.quota) {
			continue
		}
		for _, class := range q.blocked.among(q.mayEvict(g), always) {
			s.reopen(class)
		}
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
	g.queue.quota.ReleaseFor(localOf(g.Workload), g.charges)
	s.releaseAll(g.queue, g.Cluster, g.Workload, g.Placements, g.charges)
	if !g.preempted {
		s.evictedFor.forgetVictims(id)
	}
}
