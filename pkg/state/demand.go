package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Demand returns what waiting gangs lack that more nodes would give them. From the first time
// on that a gang is in it, the flavors of its queue take turns, where the queue wants that. A
// new leader begins with the first flavor again: the demand decides nothing here.
func (s *State) Demand(most int, now time.Time) workload.Demand {
	before := s.lacking
	s.lacking = map[workload.ID]time.Time{}
	return s.admission.Unmet(most, func(id workload.ID) time.Duration {
		since, known := before[id]
		if !known {
			since = now
		}
		s.lacking[id] = since
		return now.Sub(since)
	})
}
