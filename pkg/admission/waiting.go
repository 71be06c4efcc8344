package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// Waiting is a workload in a queue.
type Waiting struct {
	Workload *workload.Workload
	// Order is the submission's place among all submissions; an evicted workload
	// keeps it.
	Order int64
	// Queue is its ClusterQueue; empty means that of the LocalQueue that
	// Workload.Queue names in the workload's namespace, and where there is none
	// the ClusterQueue of that name.
	Queue string
	// NotBefore: it is not looked at before this time.
	NotBefore time.Time
	// Since is when it was submitted, and RunTime how long it is declared to hold
	// its places; zero where that is not known. Backfill goes by them.
	Since   time.Time
	RunTime time.Duration
	// Told: the caller has a reason of it already, so Decide names it in
	// Plan.Waits only when there is news.
	Told bool
	// Claiming: gangs were being evicted for it in an earlier term. It is looked
	// at before all others, so that it gets what they free.
	Claiming bool
	// Grows: it is what a started gang of the same id asks for beyond its places;
	// see State.Grow.
	Grows bool

	aged   bool // its patience is over, in a queue where that matters
	queue  *queue
	shape  *shape
	bucket *bucket // nil while held or backing off, or when it has a claim
	index  int     // in the bucket
	held   *workload.Reason
}

// before orders the waiting: priority, then submission.
func before(a, b *Waiting) int {
	return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order))
}

// queue is a ClusterQueue with its waiting and its started.
type queue struct {
	name    string
	quota   *quota.Queue
	buckets map[bucketKey]*bucket
	all     buckets // that have members
	open    buckets // of them, those to be looked at
	started map[workload.ID]*Started
	claims  int // preemptors of the queue that gangs are evicted for
	// blocked are the buckets that are not open.
	blocked map[*bucket]bool
	// young are those whose patience is not over, by Since, where that matters.
	young []*Waiting
	// allowance is what searches for its gangs may still take.
	allowance allowance
}

func newQueue(name string, of *quota.Queue) *queue {
	q := &queue{
		name: name, quota: of, buckets: map[bucketKey]*bucket{}, started: map[workload.ID]*Started{}, blocked: map[*bucket]bool{},
	}
	q.all = buckets{place: placeInAll, order: q.inLine}
	q.open = buckets{place: placeInOpen, order: q.passing}
	return q
}

func (s *State) queue(name string) *queue {
	q := s.queues[name]
	if q == nil {
		q = newQueue(name, s.tree.Ensure(name))
		s.queues[name] = q
		i, _ := slices.BinarySearchFunc(s.sorted, name, func(q *queue, name string) int { return cmp.Compare(q.name, name) })
		s.sorted = slices.Insert(s.sorted, i, q)
	}
	return q
}

// head returns the first in line; the queue has members.
func (q *queue) head() *Waiting { return q.all.list[0].head() }

func (q *queue) strict() bool { return q.quota.Strategy == quota.StrictFIFO }

// candidate returns the bucket whose head is to be looked at next, nil for none.
func (q *queue) candidate(now time.Time) *bucket {
	switch {
	case q.open.Len() == 0, q.strict() && (q.claims > 0 || q.all.list[0].atOpen < 0):
		return nil
	case q.strict():
		return q.all.list[0]
	case q.backfills():
		if head := q.all.list[0]; head.atOpen >= 0 {
			return head
		}
		if q.closed(now) {
			return nil
		}
	}
	return q.open.list[0]
}

// closed reports whether nobody passes the head of a Backfill queue: it waits for
// quota, and its patience is over. What its queue frees is to be its.
func (q *queue) closed(now time.Time) bool {
	if !q.backfills() || q.all.Len() == 0 {
		return false
	}
	head := q.all.list[0]
	return head.atOpen < 0 && head.lacks == nil && head.reason.Kind == workload.ReasonQuota && !now.Before(head.head().patient())
}

// Enqueue adds a workload to the waiting. Workloads with equal pod sets share
// them in memory from then on. A workload that waits already is replaced.
func (s *State) Enqueue(w Waiting) {
	s.takeOut(w.Workload.ID)
	s.expect(s.enqueue(w))
}

// enqueue is Enqueue of one that does not wait and that the fleets know of.
func (s *State) enqueue(w Waiting) *Waiting {
	added := &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(w.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.shape = s.shapeOf(w.Workload)
	added.shape.refs++
	s.waiting.Put(added)
	s.fresh = append(s.fresh, added)
	if len(s.fresh) > 2*s.waiting.Len()+spareFresh { // nobody decides on this state
		s.fresh = slices.DeleteFunc(s.fresh, func(f *Waiting) bool { return !s.waiting.Has(f) })
	}
	switch added.held = s.heldBy(added); {
	case added.held != nil:
	case !w.NotBefore.IsZero():
		i, _ := slices.BinarySearchFunc(s.later, added, earlier)
		s.later = slices.Insert(s.later, i, added)
	default:
		s.toBucket(added)
	}
	return added
}

// expect has the fleets keep room for the like of one that waits; unexpect takes
// that back when it leaves the line. What has places, or a claim to them, counts
// by itself.
func (s *State) expect(w *Waiting) {
	for _, fleet := range s.fleets {
		fleet.Expect(w.shape.demand, 1)
	}
}

func (s *State) unexpect(w *Waiting) {
	for _, fleet := range s.fleets {
		fleet.Expect(w.shape.demand, -1)
	}
}

func (s *State) clusterQueue(w *workload.Workload) string {
	if local := s.tree.Local(w.Namespace, w.Queue); local != nil {
		return local.ClusterQueue
	}
	return w.Queue
}

// spareFresh that do not wait any more may be among the fresh.
const spareFresh = 1000

func earlier(a, b *Waiting) int {
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
}

// Dequeue removes a workload from the waiting for good, and gives back what was
// held for it.
func (s *State) Dequeue(id workload.ID) {
	s.takeOut(id)
	delete(s.fought, id)
}

func (s *State) takeOut(id workload.ID) {
	w := s.waiting.Get(id)
	if w == nil {
		return
	}
	if i := slices.IndexFunc(s.claims, func(c *claim) bool { return c.waiting == w }); i >= 0 {
		s.giveUp(s.claims[i])
	}
	s.waiting.Delete(id)
	s.unexpect(w)
	s.later = slices.DeleteFunc(s.later, func(l *Waiting) bool { return l == w })
	s.fromBucket(w)
	if w.queue.strict() || w.queue.backfills() {
		s.freed[w.queue.quota.Root()] = true // it may have a new head
	}
	s.drop(w.shape)
}
