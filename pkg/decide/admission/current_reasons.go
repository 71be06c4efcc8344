package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// mostReconsidered bounds how many waiting workloads take part.
const mostReconsidered = 2000

// CurrentReasons returns up-to-date reasons of waiting workloads that lack quota or
// places. State.Reason has those of the last attempt, whose amounts may be out of date,
// because a workload is not tried again while nothing could admit it. It costs a
// decision on the given workloads and the first mostReconsidered. The state stays as it
// is.
func CurrentReasons(s *State, now time.Time, of ...workload.ID) map[workload.ID]*workload.Reason {
	found := map[workload.ID]*workload.Reason{}
	waiting := s.firstWaiting(mostReconsidered)
	var asked []*Waiting
	for _, id := range of {
		w := s.waiting.Get(id)
		if w == nil || !hasAmounts(s.reason(w)) {
			continue
		}
		asked = append(asked, w)
		if !slices.Contains(waiting, w) {
			waiting = append(waiting, w)
		}
	}
	if len(asked) == 0 {
		return found
	}
	s.onRebuilt(waiting, func(copied *State) {
		Decide(copied, now)
		for _, w := range asked {
			id := w.Workload.ID
			if w := copied.waiting.Get(id); w != nil && hasAmounts(copied.reason(w)) {
				found[id] = copied.reason(w)
			}
		}
	})
	return found
}
