package state

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

const (
	// slowStart is how long a gang may take to start before its reason names what it waits
	// for, and slowRepeat how often it looks again.
	slowStart  = 10 * time.Second
	slowRepeat = 2 * time.Second
	// settleTime is how long a lost pod or place is waited for before anything is done
	// about it: a job that ends loses its pods, too, and the news of both may come
	// in any order.
	settleTime = 2 * time.Second
)

// timer is when time may change something for a workload.
type timer struct {
	at    time.Time
	order int64 // of submission, so that what falls due at once does so in order
	id    workload.ID
}

// timers is a heap of them, the earliest first. Outdated ones stay until they fire.
type timers []timer

func (t timers) Len() int      { return len(t) }
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t timers) Less(i, j int) bool {
	return cmp.Or(t[i].at.Compare(t[j].at), cmp.Compare(t[i].order, t[j].order)) < 0
}
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// setTimer sets the timer of a workload to its next deadline.
func (l *lifecycle) setTimer(e *entry) {
	if e.attemptState == nil { // admission knows its time
		return
	}
	next := l.nextDeadline(e)
	if next.IsZero() || next.Equal(e.deadline) {
		e.deadline = next
		return
	}
	e.deadline = next
	heap.Push(&l.timers, timer{next, e.order, e.ID})
	if len(l.timers) > 4*l.live.Len()+spareTimers {
		l.timers = slices.DeleteFunc(l.timers, func(t timer) bool { return l.timerTarget(t) == nil })
		heap.Init(&l.timers)
	}
}

// timerTarget returns the workload of a timer; nil when the timer is outdated.
func (l *lifecycle) timerTarget(t timer) *entry {
	if e := l.live.Get(t.id); e != nil && e.attemptState != nil && e.deadline.Equal(t.at) && !l.frozen(e) {
		return e
	}
	return nil
}

// spareTimers is how many outdated timers may be in the heap before it is tidied.
const spareTimers = 1000
