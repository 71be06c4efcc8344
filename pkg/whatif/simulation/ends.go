package simulation

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// end is when a started job will end, or without a job when time alone changes something.
type end struct {
	at      time.Time
	seq     int // of its start, so that jobs that end at once end in that order
	id      workload.ID
	attempt int
}

// ends is a heap of them, the next one first.
type ends []end

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].seq < e[j].seq
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
