package estimate

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// timer is when something happens.
type timer struct {
	at  time.Time
	seq int
	id  workload.ID
}

// timers is a heap of them, the next one first.
type timers []timer

func (t timers) Len() int { return len(t) }

func (t timers) Less(i, j int) bool {
	return cmp.Or(t[i].at.Compare(t[j].at), cmp.Compare(t[i].seq, t[j].seq)) < 0
}

func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
