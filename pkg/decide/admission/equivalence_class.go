package admission

import (
	"container/heap"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// equivalenceClass holds the waiting workloads of a queue with equal signature and
// priority, and in a Backfill queue equal run time. They share one verdict: when the
// first does not start, no member does. It is a heap by submission.
type equivalenceClass struct {
	queue     *queue
	signature *podSetSignature
	priority  int32
	members   []*Waiting
	atAll     int       // place in queue.all
	atOpen    int       // place in queue.open; -1: blocked
	rank      classRank // in queue.blocked

	// The rest is about a blocked class. invalidate.go lists what reopens it. What blockedClasses
	// reads of it is changed in class_changes.go.

	reason *workload.Reason
	// retryAt is when it is reopened without any event; zero for never.
	retryAt time.Time
	// cut: a search was put off for want of allowance, so its answer is not known.
	cut bool
	// overQuota has each assignment that is not within quota, with the charge that is not.
	overQuota []overQuota
	// triedPreemption: evictions were considered, so whatever is freed may help.
	triedPreemption bool
	// hopelessAt, where evictions were considered, is State.departed at the time if
	// evicting all candidates together was not enough; else notHopeless.
	hopelessAt int64
	unplaced   unplaced
	// blockedBy is the reservation that keeps it back; nil for none.
	blockedBy *headReservation
	// sparing: reservations of nodes, a gang that shows itself, or places that are kept for one
	// whose nodes come, keep it back.
	sparing bool

	// What follows is about a class behind a head; see behind.go.

	never      *workload.Reason // why no member ever fits; nil when they may
	neverKnown bool
	// compared: the reported reasons of all members have been compared with comparedAs, which
	// is whether they never fit.
	compared, comparedAs bool
}

// unplaced is what has no places although it is within quota, with its flavors; nothing without
// a signature.
type unplaced struct {
	*flavoredSignature
	flavors []workload.PodSetFlavors
}

// overQuota is a charge that is more than quota allows, and all of its assignment.
type overQuota struct {
	quota.Charge
	assigned []quota.Charge
}

// notHopeless is hopelessAt of a class that evictions may help.
const notHopeless = -1

func (c *equivalenceClass) first() *Waiting    { return c.members[0] }
func (c *equivalenceClass) Len() int           { return len(c.members) }
func (c *equivalenceClass) Less(i, j int) bool { return c.members[i].Order < c.members[j].Order }
func (c *equivalenceClass) Swap(i, j int) {
	c.members[i], c.members[j] = c.members[j], c.members[i]
	c.members[i].index, c.members[j].index = i, j
}
func (c *equivalenceClass) Push(x any) {
	w := x.(*Waiting)
	w.index = len(c.members)
	c.members = append(c.members, w)
}
func (c *equivalenceClass) Pop() any {
	last := c.members[len(c.members)-1]
	c.members[len(c.members)-1] = nil
	c.members = c.members[:len(c.members)-1]
	return last
}

// classHeap is a heap of classes by their first gangs, in an order of the queue; place is
// where a class keeps its index.
type classHeap struct {
	list  []*equivalenceClass
	order func(a, b *Waiting) int
	place func(*equivalenceClass) *int
}

func placeInAll(class *equivalenceClass) *int  { return &class.atAll }
func placeInOpen(class *equivalenceClass) *int { return &class.atOpen }

func (h *classHeap) Len() int           { return len(h.list) }
func (h *classHeap) Less(i, j int) bool { return h.order(h.list[i].first(), h.list[j].first()) < 0 }
func (h *classHeap) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.place(h.list[i]), *h.place(h.list[j]) = i, j
}
func (h *classHeap) Push(x any) {
	class := x.(*equivalenceClass)
	*h.place(class) = len(h.list)
	h.list = append(h.list, class)
}
func (h *classHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = nil
	h.list = h.list[:len(h.list)-1]
	*h.place(last) = -1
	return last
}

// classKey identifies a class within its queue.
type classKey struct {
	signature *podSetSignature
	priority  int32
	runTime   time.Duration
	impatient bool
	grows     workload.ID // a gang that grows is a class of its own
	namespace string      // in a queue that selects namespaces, and where LimitRanges keep it out of a cluster
	local     string      // in a queue that is ordered by the use of LocalQueues
	tried     string      // flavors by which no nodes are asked for
	triedIn   string      // the clusters in which none are, and by which flavors
	failures  int         // in a queue whose gangs show themselves
	beyond    string      // the clusters that would refuse its pods
	reserved  string      // the reservations of nodes that are for it, as one of its queue
}

// addToClass puts a workload into its class, and a new class into its queue.
func (s *State) addToClass(w *Waiting) {
	q, key := w.queue, w.key()
	q.front = nil
	q.trackPatience(w)
	s.joinLocal(w)
	class := q.classes[key]
	if class == nil {
		class = &equivalenceClass{queue: q, signature: w.signature, priority: w.Workload.Priority, atOpen: -1}
		q.classes[key] = class
	}
	w.class = class
	heap.Push(class, w)
	if class.Len() == 1 {
		heap.Push(&q.all, class)
		heap.Push(&q.open, class)
		return
	}
	s.fixOrder(class, class.first() == w)
}

// fixOrder restores the order of the queue after a member of the class came or went.
// The preemption candidates of a class depend on its first gang (submission order, past
// evictions), and so does what is kept for a gang that shows itself: a new first gang reopens
// the class.
func (s *State) fixOrder(class *equivalenceClass, newFirst bool) {
	heap.Fix(&class.queue.all, class.atAll)
	if class.atOpen >= 0 {
		heap.Fix(&class.queue.open, class.atOpen)
	} else if newFirst && (class.queue.quota.Preemption != nil || class.sparing) {
		s.reopen(class)
	}
}

// removeFromClass takes a workload out of its class, and an empty class out of its
// queue.
func (s *State) removeFromClass(w *Waiting) {
	class := w.class
	if class == nil {
		return
	}
	w.class, class.queue.front = nil, nil
	wasFirst := class.first() == w
	heap.Remove(class, w.index)
	if class.Len() > 0 {
		class.queue.leaveLocal(w)
		s.fixOrder(class, wasFirst)
		return
	}
	s.unblock(class)
	class.members = append(class.members, w) // the heaps compare first gangs
	heap.Remove(&class.queue.all, class.atAll)
	if class.atOpen >= 0 {
		heap.Remove(&class.queue.open, class.atOpen)
	}
	class.members = nil
	delete(class.queue.classes, w.key())
	class.queue.leaveLocal(w)
}

// block sets a class aside until an event may change its refusal.
func (s *State) block(class *equivalenceClass, reason *workload.Reason) {
	class.reason = reason
	heap.Remove(&class.queue.open, class.atOpen)
	class.queue.blocked.add(class)
	for _, sig := range class.signature.sizes() {
		for _, flavored := range s.optionsOf(class.queue, sig).flavored {
			flavored.blocked[class] = true
		}
	}
}

// unblock forgets why a class is blocked. The caller puts it back into queue.open.
func (s *State) unblock(class *equivalenceClass) {
	class.queue.blocked.remove(class)
	for _, sig := range class.signature.sizes() {
		if o := sig.options[class.queue]; o != nil {
			for _, flavored := range o.flavored {
				delete(flavored.blocked, class)
			}
		}
	}
	class.retryAt, class.triedPreemption, class.overQuota, class.sparing = time.Time{}, false, nil, false
	if class.blockedBy != nil {
		delete(class.blockedBy.blocked, class)
		class.blockedBy = nil
	}
}

// reopen has a blocked class tried again.
func (s *State) reopen(class *equivalenceClass) {
	if class.atOpen < 0 {
		s.unblock(class)
		heap.Push(&class.queue.open, class)
	}
}
