package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// schedule is the dispatcher's work queue: each workload once, and by one worker
// at a time. Which comes next is drawn.
type schedule struct {
	w        *World
	m        *machine
	begun    bool
	workers  []*proc
	at       map[workload.ID]bool
	working  map[workload.ID]bool
	failures map[workload.ID]int
	turns    *turns
}

// Add implements dispatcher.Schedule.
func (s *schedule) Add(id workload.ID) {
	s.at[id] = true
	for _, p := range s.workers {
		p.wake()
	}
}

func (s *schedule) ready() []workload.ID {
	var ready []workload.ID
	for _, id := range slices.SortedFunc(maps.Keys(s.at), cmp.Compare[workload.ID]) {
		if !s.working[id] {
			ready = append(ready, id)
		}
	}
	return ready
}

// Len implements dispatcher.Schedule.
func (s *schedule) Len() int { return len(s.ready()) }

// Get implements dispatcher.Schedule.
func (s *schedule) Get() (workload.ID, bool) {
	ready := s.ready()
	id := ready[s.w.random.IntN(len(ready))]
	delete(s.at, id)
	s.working[id] = true
	s.turns.begin(id)
	return id, false
}

// Done implements dispatcher.Schedule.
func (s *schedule) Done(id workload.ID) { delete(s.working, id) }

// AddAfter implements dispatcher.Schedule.
func (s *schedule) AddAfter(id workload.ID, d time.Duration) {
	life := s.m.life
	s.w.after(d, func() {
		if s.m.life == life && !s.m.dead {
			s.Add(id)
		}
	})
}

// AddRateLimited implements dispatcher.Schedule.
func (s *schedule) AddRateLimited(id workload.ID) {
	s.AddAfter(id, min(retryFirst<<min(s.failures[id], 20), retryMost))
	s.failures[id]++
}

// Forget implements dispatcher.Schedule.
func (s *schedule) Forget(id workload.ID) { delete(s.failures, id) }

// NumRequeues implements dispatcher.Schedule.
func (s *schedule) NumRequeues(id workload.ID) int { return s.failures[id] }

// ShutDown implements dispatcher.Schedule.
func (s *schedule) ShutDown() {}

// ShutDownWithDrain implements dispatcher.Schedule.
func (s *schedule) ShutDownWithDrain() {}

// ShuttingDown implements dispatcher.Schedule.
func (s *schedule) ShuttingDown() bool { return false }
