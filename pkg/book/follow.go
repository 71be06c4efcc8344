package book

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
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
	// Settings are what governs now, nil when that has not changed.
	Settings *Settings
}

// Settings are queues and policy.
type Settings struct {
	Queues []Queue
	Policy quota.Config
}

// Version is the version of the ledger that the book knows.
func (b *Book) Version() int64 { return b.version }

// Settings are what the book was made with, and where it is: all that is needed
// beside the live workloads and the nodes to make the same one again.
func (b *Book) Settings() Stored {
	queues := slices.SortedFunc(maps.Values(b.queues), func(x, y Queue) int { return cmp.Compare(x.Name, y.Name) })
	return Stored{Queues: queues, Policy: b.policy, LastOrder: b.lastOrder, Version: b.version, MaxEvent: b.maxEvent}
}

// Follow takes in what the leader has committed. The book then is as if it had
// been read anew. It is for standbys: a book that has decided or taken anything
// in by itself must not follow.
func (b *Book) Follow(d Delta) {
	if d.Settings != nil {
		b.Govern(d.Settings.Queues, d.Settings.Policy, d.Version)
	}
	for _, n := range d.Nodes {
		b.insertNode(n)
	}
	for _, id := range d.Gone {
		b.remove(id)
	}
	for _, w := range d.Workloads {
		b.remove(w.ID)
		b.insert(w)
	}
	for _, key := range d.GoneNodes {
		b.dropNode(key)
		delete(b.notReady, key)
		b.offer(key)
	}
	for _, n := range d.Nodes {
		b.offer(admission.NodeKey{Cluster: n.Cluster, Name: n.Name})
	}
	b.version, b.lastOrder = d.Version, max(b.lastOrder, d.LastOrder)
	b.changed = newChanged()
}

// Governs reports whether the book was made with these queues and this policy.
func (b *Book) Governs(queues []Queue, policy quota.Config) bool {
	if len(queues) != len(b.queues) {
		return false
	}
	for _, queue := range queues {
		if !reflect.DeepEqual(queue, b.queues[queue.Name]) {
			return false
		}
	}
	return reflect.DeepEqual(policy, b.policy)
}

// Lead begins a term on a book that has followed.
func (b *Book) Lead(epoch, maxEvent int64) { b.epoch, b.maxEvent = epoch, maxEvent }

// Restore takes in a live workload as stored, while the book is being made.
func (b *Book) Restore(w StoredWorkload) {
	b.insert(w)
	clear(b.changed.nodes) // reading is no change
}

// insert takes in a live workload as stored.
func (b *Book) insert(w StoredWorkload) {
	e := &entry{Record: w.Record, order: w.Order}
	b.live.Put(e)
	b.liveIn[e.Queue]++
	b.objects.add(e)
	b.charge(e, 1)
	if e.Phase == workload.Queued {
		b.enqueueAs(e, e.Reason != nil)
	} else {
		b.begin(e)
		b.start(e)
	}
	b.schedule(e)
}

// remove is the reverse of insert.
func (b *Book) remove(id workload.ID) {
	e := b.live.Get(id)
	if e == nil {
		return
	}
	b.charge(e, -1)
	if e.Phase == workload.Queued {
		b.admission.Dequeue(id)
	} else {
		b.admission.Leave(id)
		b.admission.Release(id)
	}
	b.forget(e)
}

// insertNode takes in a node as stored; what is reserved on it stays.
func (b *Book) insertNode(n StoredNode) {
	key := admission.NodeKey{Cluster: n.Cluster, Name: n.Name}
	known := b.nodes[key]
	if known == nil {
		known = &node{reserved: resource.List{}, strays: map[workload.ID]resource.List{}, holders: map[workload.ID]int{}}
		b.putNode(key, known)
	}
	known.Node, known.version, known.present = n.Node, n.Version, n.Present
	delete(b.notReady, key)
	if n.Present && !n.Ready {
		b.notReady[key] = true
	}
}
