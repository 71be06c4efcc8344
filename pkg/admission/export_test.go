package admission

import "time"

// Anew is what a decision would do that looks at all who wait. What is held for
// heads stays. The state stays as it is.
func Anew(s *State, now time.Time) (plan Plan) {
	s.rehearse(s.inLine(len(s.waiting)), func(copied *State) {
		for _, h := range copied.holds {
			h.stale = s.holdOf(s.waiting[h.head.Workload.ID]).stale
		}
		copied.newCluster, copied.grown = false, false
		plan = Decide(copied, now)
	})
	return plan
}

// OnCopy is what a decision does on a copy of the state.
func OnCopy(s *State, now time.Time) (plan Plan) {
	s.forked(func() { plan = Decide(s.copied(), now) })
	return plan
}
