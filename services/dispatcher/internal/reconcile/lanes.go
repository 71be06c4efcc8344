package reconcile

import (
	"sync"

	"muster.dev/muster/pkg/workload"
)

// ordinaryTurn: of so many workloads taken from a full queue one is from the
// ordinary lane, so that a stream of new gangs does not keep the others from
// their nodes.
const ordinaryTurn = 8

// lanes is the order in which workloads are looked at: those whose object is
// still to be created first, each lane in order of arrival. A gang that is
// created early lets KubeRay begin, while pinning its first pods can wait. It is
// the queue inside client-go's work queue, which serializes all calls but
// those of setNew.
type lanes struct {
	fresh, ordinary []workload.ID
	taken           int

	mu  sync.Mutex
	new map[workload.ID]bool
}

func newLanes() *lanes { return &lanes{new: map[workload.ID]bool{}} }

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
	if l.isNew(id) {
		l.fresh = append(l.fresh, id)
	} else {
		l.ordinary = append(l.ordinary, id)
	}
}

// Len implements workqueue.Queue.
func (l *lanes) Len() int { return len(l.fresh) + len(l.ordinary) }

// Pop implements workqueue.Queue; it is called with something in the queue.
func (l *lanes) Pop() workload.ID {
	l.taken++
	if len(l.fresh) == 0 || len(l.ordinary) > 0 && l.taken%ordinaryTurn == 0 {
		return shift(&l.ordinary)
	}
	return shift(&l.fresh)
}

func shift(lane *[]workload.ID) workload.ID {
	first := (*lane)[0]
	(*lane)[0] = ""
	*lane = (*lane)[1:]
	return first
}
