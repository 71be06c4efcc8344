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
}

// Settings are queues and policy.
type Settings struct {
	Queues []Queue
	Policy quota.Config
}

// Version is the version of the ledger that the state knows.
func (m *State) Version() int64 { return m.version }

// Settings are what the state was made with, and where it is: all that is needed
// beside the live workloads and the nodes to make the same one again.
func (m *State) Settings() Stored {
	queues := slices.SortedFunc(maps.Values(m.queues), func(x, y Queue) int { return cmp.Compare(x.Name, y.Name) })
	return Stored{Queues: queues, Policy: m.policy, LastOrder: m.lastOrder, Version: m.version, MaxEvent: m.maxEvent}
}

// Follow applies what the leader has committed. The state then equals one that is loaded
// from Postgres. It is for standbys: a state that has decided or applied an input must
// not follow.
func (m *State) Follow(d Delta) {
	if d.Settings != nil {
		m.ApplyConfiguration(d.Settings.Queues, d.Settings.Policy, d.Version)
	}
	for _, n := range d.Nodes {
		m.insertNode(n)
	}
	for _, id := range d.Gone {
		m.remove(id)
	}
	for _, w := range d.Workloads {
		m.remove(w.ID)
		m.insert(w)
	}
	for _, key := range d.GoneNodes {
		m.dropNode(key)
		delete(m.notReady, key)
		m.syncNode(key)
	}
	for _, n := range d.Nodes {
		m.syncNode(admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
	}
	m.version, m.lastOrder = d.Version, max(m.lastOrder, d.LastOrder)
	m.changed = newChangeSet()
}

// HasConfiguration reports whether the state was made with these queues and this policy.
func (m *State) HasConfiguration(queues []Queue, policy quota.Config) bool {
	if len(queues) != len(m.queues) {
		return false
	}
	for _, queue := range queues {
		if !reflect.DeepEqual(queue, m.queues[queue.Name]) {
			return false
		}
	}
	return reflect.DeepEqual(policy, m.policy)
}

// Lead begins a term on a state that has followed.
func (m *State) Lead(epoch, maxEvent int64) {
	m.epoch, m.maxEvent, m.inquiries.epoch = epoch, maxEvent, epoch
}

// Restore takes in a live workload as stored, while the state is being made.
func (m *State) Restore(w StoredWorkload) {
	m.insert(w)
	clear(m.changed.nodes) // reading is no change
}

// insert takes in a live workload as stored.
func (m *State) insert(w StoredWorkload) {
	e := &entry{Record: w.Record, order: w.Order}
	m.live.Put(e)
	m.liveIn[e.Queue]++
	m.objects.add(e)
	m.updateReserved(e, 1)
	if e.Phase == workload.Queued {
		m.enqueueAs(e, e.Reason != nil)
	} else {
		m.beginAttempt(e)
		m.restoreStarted(e)
		if e.Phase == workload.Running {
			e.moveAt = e.EvictAt // an announced move keeps its time
		}
	}
	m.setTimer(e)
}

// remove is the reverse of insert.
func (m *State) remove(id workload.ID) {
	e := m.live.Get(id)
	if e == nil {
		return
	}
	m.updateReserved(e, -1)
	if e.Phase == workload.Queued {
		m.admission.Dequeue(id)
	} else {
		m.admission.Leave(id)
		m.admission.Release(id)
	}
	delete(m.removals.removing, id) // the leader notes what is still removed of a workload that ended
	m.forget(e)
}
