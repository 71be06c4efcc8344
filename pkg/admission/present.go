package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/workload"
)

// presentWaiting bounds how many of the waiting take part.
const presentWaiting = 2000

// Present returns, of waiting workloads that lack quota or places, the reasons
// that one finds now. Those of State.Reason are of the last look at them, and
// nobody looks while nothing could admit them, though the amounts in the reason
// may have changed. It costs a decision on all that wait, or on the given and the
// first presentWaiting of them. The state stays as it is.
func Present(s *State, now time.Time, of ...workload.ID) map[workload.ID]*workload.Reason {
	found := map[workload.ID]*workload.Reason{}
	line := s.inLine(presentWaiting)
	var aged []*Waiting
	for _, id := range of {
		w := s.waiting.Get(id)
		if w == nil || !hasAmounts(s.reason(w)) {
			continue
		}
		aged = append(aged, w)
		if !slices.Contains(line, w) {
			line = append(line, w)
		}
	}
	if len(aged) == 0 {
		return found
	}
	s.rehearse(line, func(copied *State) {
		Decide(copied, now)
		for _, was := range aged {
			id := was.Workload.ID
			if w := copied.waiting.Get(id); w != nil && hasAmounts(copied.reason(w)) {
				found[id] = copied.reason(w)
			}
		}
	})
	return found
}

// hasAmounts reports whether a reason tells what is lacking.
func hasAmounts(why *workload.Reason) bool {
	return why.Kind == workload.ReasonQuota || why.Kind == workload.ReasonFit || why.Kind == workload.ReasonTopology
}
