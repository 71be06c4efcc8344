package admission

import (
	"container/heap"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// bucket holds the waiting of a queue that are alike in shape and priority, and
// in run time where that matters. One verdict serves all: when its head does not
// start, nobody in it does. It is a heap by submission.
type bucket struct {
	queue    *queue
	shape    *shape
	priority int32
	members  []*Waiting
	atAll    int // place in queue.all
	atOpen   int // place in queue.open; -1: blocked
	// Of a blocked bucket: why, and the time at which it is looked at again
	// though nothing has changed, if any.
	reason  *workload.Reason
	retryAt time.Time
	// overs are what it lacks of quota, one for each assignment.
	overs []quota.Charge
	// preempts: evictions were considered, so whatever is freed may help.
	preempts bool
	// hopeless, when evictions were considered: all of those together who might be
	// evicted were not enough, and State.left was that; hopeful: they may be.
	hopeless int64
	// lacks is, when it is within quota but lacks places, what it has none for.
	lacks *variant
	// behind is the hold that keeps it back, if one does.
	behind *hold
}

func (b *bucket) head() *Waiting     { return b.members[0] }
func (b *bucket) Len() int           { return len(b.members) }
func (b *bucket) Less(i, j int) bool { return b.members[i].Order < b.members[j].Order }
func (b *bucket) Swap(i, j int) {
	b.members[i], b.members[j] = b.members[j], b.members[i]
	b.members[i].index, b.members[j].index = i, j
}
func (b *bucket) Push(x any) {
	w := x.(*Waiting)
	w.index = len(b.members)
	b.members = append(b.members, w)
}
func (b *bucket) Pop() any {
	last := b.members[len(b.members)-1]
	b.members[len(b.members)-1] = nil
	b.members = b.members[:len(b.members)-1]
	return last
}

// buckets is a heap of buckets by their heads, in an order of the queue; place is
// where a bucket keeps its index.
type buckets struct {
	list  []*bucket
	order func(a, b *Waiting) int
	place func(*bucket) *int
}

func placeInAll(b *bucket) *int  { return &b.atAll }
func placeInOpen(b *bucket) *int { return &b.atOpen }

func (h *buckets) Len() int           { return len(h.list) }
func (h *buckets) Less(i, j int) bool { return h.order(h.list[i].head(), h.list[j].head()) < 0 }
func (h *buckets) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	*h.place(h.list[i]), *h.place(h.list[j]) = i, j
}
func (h *buckets) Push(x any) {
	b := x.(*bucket)
	*h.place(b) = len(h.list)
	h.list = append(h.list, b)
}
func (h *buckets) Pop() any {
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = nil
	h.list = h.list[:len(h.list)-1]
	*h.place(last) = -1
	return last
}

// bucketKey is what those have in common that one verdict serves.
type bucketKey struct {
	shape    *shape
	priority int32
	runTime  time.Duration
	aged     bool
	grows    workload.ID // which gang, of a bucket of its own
}

// toBucket puts a workload among its like, in line for its queue.
func (s *State) toBucket(w *Waiting) {
	q, key := w.queue, w.key()
	q.watchAge(w)
	b := q.buckets[key]
	if b == nil {
		b = &bucket{queue: q, shape: w.shape, priority: w.Workload.Priority, atOpen: -1}
		q.buckets[key] = b
	}
	w.bucket = b
	heap.Push(b, w)
	if b.Len() == 1 {
		heap.Push(&q.all, b)
		heap.Push(&q.open, b)
		return
	}
	s.moved(b, b.head() == w)
}

// moved restores the order of the queue after one of the bucket came or went.
// Whom gangs of one shape and priority may have evicted depends on which of them
// is the head: its submission, and whom it has had evicted before.
func (s *State) moved(b *bucket, newHead bool) {
	heap.Fix(&b.queue.all, b.atAll)
	if b.atOpen >= 0 {
		heap.Fix(&b.queue.open, b.atOpen)
	} else if newHead && b.queue.quota.Preemption != nil {
		s.reopen(b)
	}
}

// fromBucket takes a workload out of its bucket.
func (s *State) fromBucket(w *Waiting) {
	b := w.bucket
	if b == nil {
		return
	}
	w.bucket = nil
	wasHead := b.head() == w
	heap.Remove(b, w.index)
	if b.Len() > 0 {
		s.moved(b, wasHead)
		return
	}
	s.unblock(b)
	b.members = append(b.members, w) // the heaps compare heads
	heap.Remove(&b.queue.all, b.atAll)
	if b.atOpen >= 0 {
		heap.Remove(&b.queue.open, b.atOpen)
	}
	b.members = nil
	delete(b.queue.buckets, w.key())
}

// block notes that the bucket need not be looked at until something changes
// that it depends on.
func (s *State) block(b *bucket, reason *workload.Reason) {
	b.reason = reason
	heap.Remove(&b.queue.open, b.atOpen)
	b.queue.blocked[b] = true
	for _, v := range s.optionsOf(b.queue, b.shape).variants {
		v.waiters[b] = true
	}
}

// unblock takes the notes back; the caller puts the bucket where it belongs.
func (s *State) unblock(b *bucket) {
	delete(b.queue.blocked, b)
	if o := b.shape.options[b.queue]; o != nil {
		for _, v := range o.variants {
			delete(v.waiters, b)
		}
	}
	b.retryAt, b.preempts, b.overs = time.Time{}, false, nil
	if b.behind != nil {
		delete(b.behind.behind, b)
		b.behind = nil
	}
}

// reopen has a blocked bucket looked at again.
func (s *State) reopen(b *bucket) {
	if b.atOpen < 0 {
		s.unblock(b)
		heap.Push(&b.queue.open, b)
	}
}
