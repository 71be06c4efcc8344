package reconcile

import (
	"sync"
	"time"

	"muster.dev/muster/pkg/workload"
)

const (
	// ordinaryWait is how long the ordinary lane stands back while gangs wait to
	// be created.
	ordinaryWait = 10 * time.Second
	// ordinaryTurn: behind ordinaryWait, one of so many workloads taken is from the
	// ordinary lane, so that an endless stream of new gangs does not keep the
	// others from their nodes.
	ordinaryTurn = 4
)

// lanes is the order in which workloads are looked at: those whose object is
// still to be created first, each lane in order of arrival. A gang that is
// created early lets KubeRay begin, while pinning its first pods can wait. It is
// the queue inside client-go's work queue, which serializes all calls but
// those of setNew.
type lanes struct {
	fresh, ordinary []waiting
	taken           int
	now             func() time.Time

	mu  sync.Mutex
	new map[workload.ID]bool
}

// waiting is a workload in a lane.
type waiting struct {
	id    workload.ID
	since time.Time
}

func newLanes() *lanes { return &lanes{now: time.Now, new: map[workload.ID]bool{}} }

// setNew says whether the workload's object is still to be created.
func (l *lanes) setNew(id workload.ID, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isNew {
		l.new[id] = true
	} else {
		delete(l.new, id)
	}
}

func (l *lanes) isNew(id workload.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.new[id]
}

// Touch implements workqueue.Queue: a workload that waits keeps its place.
func (l *lanes) Touch(workload.ID) {}

// Push implements workqueue.Queue.
func (l *lanes) Push(id workload.ID) {
	w := waiting{id, l.now()}
	if l.isNew(id) {
		l.fresh = append(l.fresh, w)
	} else {
		l.ordinary = append(l.ordinary, w)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int { return len(l.fresh) + len(l.ordinary) }

// Pop implements workqueue.Queue; it is called with something in the queue.
func (l *lanes) Pop() workload.ID {
	l.taken++
	if len(l.fresh) == 0 || l.taken%ordinaryTurn == 0 && l.overdue() {
		return shift(&l.ordinary)
	}
	return shift(&l.fresh)
}

// overdue reports whether somebody in the ordinary lane has stood back enough.
func (l *lanes) overdue() bool {
	return len(l.ordinary) > 0 && l.now().Sub(l.ordinary[0].since) >= ordinaryWait
}

func shift(lane *[]waiting) workload.ID {
	first := (*lane)[0].id
	(*lane)[0] = waiting{}
	*lane = (*lane)[1:]
	return first
}
