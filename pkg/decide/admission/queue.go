package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// queue is a ClusterQueue with its waiting and started gangs.
type queue struct {
	name        string
	quota       *quota.Queue
	classes     map[classKey]*equivalenceClass
	all         classHeap // that have members
	open        classHeap // of them, those to be tried
	started     map[workload.ID]*Started
	nominations int // of its waiting workloads
	// locals are, where its workloads are ordered by use, the LocalQueues that wait.
	locals map[string]*localQueue
	// kept is the last head for which quota was kept from other queues.
	kept *Waiting
	// blocked are the classes that are not open.
	blocked blockedClasses
	// front are the first in line down to the depth of the queue; nil when they are to be
	// looked up again.
	front []*Waiting
	// patient are, under ShortestFirst, those whose patience is not over, by its end.
	patient []*Waiting
	// allowance is what searches for its gangs may still cost.
	allowance allowance
}

func newQueue(name string, of *quota.Queue) *queue {
	q := &queue{
		name: name, quota: of, classes: map[classKey]*equivalenceClass{}, started: map[workload.ID]*Started{}, locals: map[string]*localQueue{},
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

func (s *State) clusterQueue(w *workload.Workload) string { return s.tree.Leads(w.Namespace, w.Queue) }

// head returns the head of a queue that is not empty.
func (q *queue) head() *Waiting { return q.all.list[0].first() }

// strategy returns the queue's strategy, for readers.
func (q *queue) strategy() string { return cmp.Or(q.quota.Strategy, quota.BestEffortFIFO) }

func (q *queue) strict() bool { return q.quota.Strategy == quota.StrictFIFO }

// reserves reports whether the head of the queue gets a reservation: that of a Backfill
// queue from the first, that of a BestEffortFIFO queue when its patience is over.
func (q *queue) reserves(now time.Time) bool {
	if q.all.Len() == 0 || q.strict() {
		return false
	}
	return q.backfills() || q.head().patienceIsOver(now)
}

// candidate returns the class that the queue tries next, nil for none.
func (q *queue) candidate(now time.Time) *equivalenceClass {
	switch {
	case q.open.Len() == 0, q.strict() && (q.nominations > 0 || q.all.list[0].atOpen < 0):
		return nil
	case q.strict():
		return q.all.list[0]
	case q.reserves(now):
		if head := q.all.list[0]; head.atOpen >= 0 {
			return head
		}
		if q.closedToBackfill(now) {
			return nil
		}
	}
	return q.open.list[0]
}

// closedToBackfill reports whether no gang may pass the head of the queue: the head waits
// for quota and its patience is over, so what its queue frees is kept for it.
func (q *queue) closedToBackfill(now time.Time) bool {
	if !q.reserves(now) {
		return false
	}
	head := q.all.list[0]
	if head.atOpen >= 0 || head.unplaced.flavoredSignature != nil || !waitsForQuota(head.reason) || now.Before(head.first().patienceEnd()) {
		return false
	}
	return q.backfills() || q.frees(head)
}

// frees reports whether what the queue frees can be enough for its head: the head never
// waits in vain, and in one of its flavors it asks for no more than the nominal quota, or
// would be within quota with all gangs of the queue gone.
func (q *queue) frees(head *equivalenceClass) bool {
	return head.reason.Kind != workload.ReasonNeverFits && slices.ContainsFunc(head.overQuota, func(over overQuota) bool {
		return !q.quota.ExceedsNominal([]quota.Charge{over.Charge}) || q.quota.FitsAlone(over.assigned)
	})
}

// inOrder returns the started gangs of the queue by submission.
func (q *queue) inOrder() []*Started {
	return slices.SortedFunc(maps.Values(q.started), func(a, b *Started) int { return cmp.Compare(a.Order, b.Order) })
}

// QueueOf returns the ClusterQueue of a workload.
func (s *State) QueueOf(w *workload.Workload) *quota.Queue { return s.queue(s.clusterQueue(w)).quota }
