package state

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Delta is what some commits of a leader have touched, as it is after them.
type Delta struct {
	Version   int64 // of the ledger, after them
	LastOrder int64
	Workloads []StoredWorkload // live ones
	// Gone are the workloads that were touched and are live no more.
	Gone      []workload.ID
	Nodes     []StoredNode
	GoneNodes []admission.NodeKey
	// Settings are the configuration, nil when it has not changed.
	Settings *Settings
	// PastUsage of the ClusterQueues, nil when it is not known. A standby needs it when its
	// term begins, not before.
	PastUsage []quota.PastUsage
	// Learned is what was learned of the cost of evictions; nil as PastUsage.
	Learned []admission.Learned
}

// Settings are queues and policy.
type Settings struct {
	Queues []Queue
	Policy quota.Config
}

// Version is the version of the ledger that the state knows.
func (s *State) Version() int64 { return s.version }

// Settings are what the state was made with, and where it is: all that is needed
// beside the live workloads and the nodes to make the same one again.
func (s *State) Settings() Stored {
	queues := slices.SortedFunc(maps.Values(s.queues), func(x, y Queue) int { return cmp.Compare(x.Name, y.Name) })
	return Stored{Queues: queues, Policy: s.policy, PastUsage: s.admission.PastUsage(), Learned: s.admission.Learned(), LastOrder: s.lastOrder, Version: s.version, MaxEvent: s.maxEvent}
}

// Follow applies what the leader has committed. The state then equals one that is loaded
// from Postgres. It is for standbys: a state that has decided or applied an input must
// not follow.
func (s *State) Follow(d Delta) {
	if d.Settings != nil {
		s.ApplyConfiguration(d.Settings.Queues, d.Settings.Policy, d.Version)
		for e := range s.live.All() { // the leader may have died before it reported to all whether they are held
			if e.Phase == workload.Queued {
				s.admission.SetReported(e.ID, e.Reason != nil && s.holdReported(e))
			}
		}
	}
	for _, n := range d.Nodes {
		s.insertNode(n)
	}
	for _, id := range d.Gone {
		s.remove(id)
	}
	for _, w := range d.Workloads {
		s.remove(w.ID)
		s.insert(w)
	}
	for _, key := range d.GoneNodes {
		s.dropNode(key)
		delete(s.notReady, key)
		s.syncNode(key)
	}
	for _, n := range d.Nodes {
		s.syncNode(admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
	}
	s.admission.SetPastUsage(d.PastUsage)
	if d.Learned != nil {
		s.admission.SetLearned(d.Learned)
	}
	s.version, s.lastOrder = d.Version, max(s.lastOrder, d.LastOrder)
	s.forgetChanges()
}

// forgetChanges drops what reading has noted as changed.
func (s *State) forgetChanges() {
	s.admission.ForgetUsageChanges()
	s.changed = newChangeSet()
}

// HasConfiguration reports whether the state was made with these queues and this policy.
func (s *State) HasConfiguration(queues []Queue, policy quota.Config) bool {
	if len(queues) != len(s.queues) {
		return false
	}
	for _, queue := range queues {
		if !reflect.DeepEqual(queue, s.queues[queue.Name]) {
			return false
		}
	}
	return reflect.DeepEqual(policy, s.policy)
}

// Lead begins a term on a state that has followed.
func (s *State) Lead(epoch, maxEvent int64) {
	s.epoch, s.maxEvent, s.inquiries.epoch = epoch, maxEvent, epoch
	s.restored, s.lostChanges = false, nil
}

// Restore adds a live workload as stored, while the state is being made.
func (s *State) Restore(w StoredWorkload) {
	s.insert(w)
	clear(s.changed.nodes) // reading is no change
	s.admission.ForgetUsageChanges()
}

// insert takes in a live workload as stored.
func (s *State) insert(w StoredWorkload) {
	e := &entry{Record: w.Record, order: w.Order}
	s.live.Put(e)
	if w.Asked != nil {
		s.lastAsked[e.ID] = *w.Asked
	}
	s.liveIn[e.Queue]++
	s.objects.add(e)
	s.updateReserved(e, 1)
	if e.checks() != nil && e.checks().Asked {
		s.checked[e.ID] = e
	}
	if e.Phase == workload.Queued {
		if hasRequest(e) || len(triedBy(e)) > 0 || len(triedIn(e)) > 0 {
			s.asking[e.ID] = e
		}
		s.enqueueAs(e, e.Reason != nil)
	} else {
		s.beginAttempt(e)
		s.restoreStarted(e)
		e.heardAgain = w.HeardAgain
		e.replaceAt = e.announcedReplacement() // which keeps its time
	}
	s.setTimer(e)
}

// remove is the reverse of insert.
func (s *State) remove(id workload.ID) {
	e := s.live.Get(id)
	if e == nil {
		return
	}
	s.updateReserved(e, -1)
	if e.Phase == workload.Queued {
		s.admission.Dequeue(id)
	} else {
		s.admission.Leave(id)
		s.admission.Release(id)
	}
	delete(s.removals.removing, id) // the leader notes what is still removed of a workload that ended
	s.forget(e)
}
