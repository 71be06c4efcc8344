package reconcile

import (
	"sync"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	// ordinaryWait is how long other workloads stand back while gangs wait to be
	// created.
	ordinaryWait = 10 * time.Second
	// ordinaryTurn: after ordinaryWait every ordinaryTurn-th workload is one of the
	// others, so that an endless stream of new gangs does not keep them from their
	// nodes.
	ordinaryTurn = 4
)

// creationsFirst is the order in which workloads are looked at: those whose object is
// still to be created first, then the others, each in order of arrival. A gang that is
// created early lets KubeRay begin, while pinning its first pods can wait. It is
// the queue inside client-go's work queue, which serializes all calls but
// those of setNew.
type creationsFirst struct {
	fresh, ordinary []waiting
	taken           int
	now             func() time.Time

	mu  sync.Mutex
	new map[workload.ID]bool
}

// waiting is a workload in the queue.
type waiting struct {
	id    workload.ID
	since time.Time
}

func newCreationsFirst() *creationsFirst {
	return &creationsFirst{now: time.Now, new: map[workload.ID]bool{}}
}

// setNew sets whether the workload's object is still to be created.
func (l *creationsFirst) setNew(id workload.ID, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isNew {
		l.new[id] = true
	} else {
		delete(l.new, id)
	}
}

func (l *creationsFirst) isNew(id workload.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.new[id]
}

// Touch implements workqueue.Queue: a workload that waits keeps its place.
func (l *creationsFirst) Touch(workload.ID) {}

// Push implements workqueue.Queue.
func (l *creationsFirst) Push(id workload.ID) {
	w := waiting{id, l.now()}
	if l.isNew(id) {
		l.fresh = append(l.fresh, w)
	} else {
		l.ordinary = append(l.ordinary, w)
	}
}

// Len implements workqueue.Queue.
func (l *creationsFirst) Len() int { return len(l.fresh) + len(l.ordinary) }

// Pop implements workqueue.Queue; it is called with something in the queue.
func (l *creationsFirst) Pop() workload.ID {
	l.taken++
	if len(l.fresh) == 0 || l.taken%ordinaryTurn == 0 && l.overdue() {
		return shift(&l.ordinary)
	}
	return shift(&l.fresh)
}

// overdue reports whether the first of the others has stood back enough.
func (l *creationsFirst) overdue() bool {
	return len(l.ordinary) > 0 && l.now().Sub(l.ordinary[0].since) >= ordinaryWait
}

func shift(line *[]waiting) workload.ID {
	first := (*line)[0].id
	(*line)[0] = waiting{}
	*line = (*line)[1:]
	return first
}
