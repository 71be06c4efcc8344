package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
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
	// NotBefore is the end of its back-off.
	NotBefore time.Time
	// Since is when it was submitted, and RunTime its declared run time; zero where
	// unknown. Backfill uses them.
	Since   time.Time
	RunTime time.Duration
	// Reported: the caller has its reason, so Decide names it in Plan.Waits only when
	// the reason changes.
	Reported bool
	// Nominated: gangs were evicted for it in an earlier term. It is tried before all
	// others, so that it gets what they free.
	Nominated bool
	// Grows: these are the pods that a started gang of the same id asks for beyond its
	// own; see State.Grow.
	Grows bool

	impatient bool // its patience is over, in a queue where that matters
	queue     *queue
	signature *podSetSignature
	class     *equivalenceClass // nil while held or backing off, or nominated
	index     int               // in the class
	held      *workload.Reason
}

// before orders the waiting: priority, then submission.
func before(a, b *Waiting) int {
	return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order))
}

// queue is a ClusterQueue with its waiting and started gangs.
type queue struct {
	name        string
	quota       *quota.Queue
	classes     map[classKey]*equivalenceClass
	all         classHeap // that have members
	open        classHeap // of them, those to be tried
	started     map[workload.ID]*Started
	nominations int // of its waiting workloads
	// kept is the last head for which quota was kept from other queues.
	kept *Waiting
	// blocked are the classes that are not open.
	blocked map[*equivalenceClass]bool
	// patient are, under ShortestFirst, those whose patience is not over, by Since.
	patient []*Waiting
	// allowance is what searches for its gangs may still cost.
	allowance allowance
}

func newQueue(name string, of *quota.Queue) *queue {
	q := &queue{
		name: name, quota: of, classes: map[classKey]*equivalenceClass{}, started: map[workload.ID]*Started{}, blocked: map[*equivalenceClass]bool{},
	}
	q.all = classHeap{place: placeInAll, order: q.headOrder}
	q.open = classHeap{place: placeInOpen, order: q.backfillOrder}
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

// head returns the head of a queue that is not empty.
func (q *queue) head() *Waiting { return q.all.list[0].first() }

func (q *queue) strict() bool { return q.quota.Strategy == quota.StrictFIFO }

// candidate returns the class that the queue tries next, nil for none.
func (q *queue) candidate(now time.Time) *equivalenceClass {
	switch {
	case q.open.Len() == 0, q.strict() && (q.nominations > 0 || q.all.list[0].atOpen < 0):
		return nil
	case q.strict():
		return q.all.list[0]
	case q.backfills():
		if head := q.all.list[0]; head.atOpen >= 0 {
			return head
		}
		if q.closedToBackfill(now) {
			return nil
		}
	}
	return q.open.list[0]
}

// closedToBackfill reports whether no gang may pass the head of a Backfill queue: the
// head waits for quota and its patience is over, so what its queue frees is kept for it.
func (q *queue) closedToBackfill(now time.Time) bool {
	if !q.backfills() || q.all.Len() == 0 {
		return false
	}
	head := q.all.list[0]
	return head.atOpen < 0 && head.unplaced == nil && waitsForQuota(head.reason) && !now.Before(head.first().patienceEnd())
}

// Enqueue adds a waiting workload, or replaces it. Workloads with equal pod sets share
// them in memory from then on.
func (s *State) Enqueue(w Waiting) {
	s.removeWaiting(w.Workload.ID)
	s.addDemand(s.enqueue(w))
}

// enqueue adds a workload that does not wait and whose demand the fleets have.
func (s *State) enqueue(w Waiting) *Waiting {
	added := &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(w.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.signature = s.signatureOf(w.Workload)
	added.signature.refs++
	s.waiting.Put(added)
	s.fresh = append(s.fresh, added)
	if len(s.fresh) > 2*s.waiting.Len()+spareFresh { // a state without decisions
		s.fresh = slices.DeleteFunc(s.fresh, func(f *Waiting) bool { return !s.waiting.Has(f) })
	}
	switch added.held = s.heldBy(added); {
	case added.held != nil:
	case !w.NotBefore.IsZero() && !w.Nominated: // a nomination ended its back-off, by the clock of an earlier leader
		i, _ := slices.BinarySearchFunc(s.backingOff, added, earlier)
		s.backingOff = slices.Insert(s.backingOff, i, added)
	default:
		s.addToClass(added)
	}
	return added
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

func (s *State) clusterQueue(w *workload.Workload) string {
	if local := s.tree.Local(w.Namespace, w.Queue); local != nil {
		return local.ClusterQueue
	}
	return w.Queue
}

// spareFresh is how many of the fresh may have left before the list is cleaned.
const spareFresh = 1000

func earlier(a, b *Waiting) int {
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
}

// Dequeue removes a waiting workload for good, and withdraws its nomination.
func (s *State) Dequeue(id workload.ID) {
	s.removeWaiting(id)
	delete(s.evictedFor, id)
}

func (s *State) removeWaiting(id workload.ID) {
	w := s.waiting.Get(id)
	if w == nil {
		return
	}
	if i := slices.IndexFunc(s.nominations, func(n *nomination) bool { return n.waiting == w }); i >= 0 {
		s.withdraw(s.nominations[i])
	}
	s.waiting.Delete(id)
	s.removeDemand(w)
	s.backingOff = slices.DeleteFunc(s.backingOff, func(l *Waiting) bool { return l == w })
	s.removeFromClass(w)
	if w.queue.strict() || w.queue.backfills() {
		s.noteQuotaFreed(w.queue) // it may have a new head
	}
	s.dropSignature(w.signature)
}

// firstWaiting returns the first waiting workloads over all queues, nominated ones
// excepted.
func (s *State) firstWaiting(limit int) []*Waiting {
	waiting := make([]*Waiting, 0, s.waiting.Len())
	for w := range s.waiting.All() {
		if w.nomination(s) == nil {
			waiting = append(waiting, w)
		}
	}
	slices.SortFunc(waiting, before)
	return waiting[:min(limit, len(waiting))]
}
