package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/placement"
)

// recall lets a trial's copy know what the state has found out about the waiting:
// who need not be looked at before something changes. That matters to the order
// of the others: the first of each queue that is to be looked at is weighed
// against those of other queues.
func (s *State) recall(from *State) {
	s.grown, s.newCluster = from.grown, from.newCluster
	maps.Copy(s.freed, from.freed)
	for id, w := range s.waiting {
		if was := from.waiting[id].bucket; was != nil && was.atOpen < 0 && w.bucket != nil && w.bucket.atOpen >= 0 {
			s.block(w.bucket, was.reason)
			w.bucket.retryAt, w.bucket.overs, w.bucket.preempts = was.retryAt, was.overs, was.preempts
			if was.lacks != nil {
				w.bucket.lacks = s.optionsOf(w.queue, w.shape).like(was.lacks)
			}
		}
	}
	for key, v := range s.variants {
		if known := from.variants[key]; known != nil {
			maps.Copy(v.verdicts, known.verdicts)
		}
	}
	for _, h := range s.holds {
		known := from.holdOf(from.waiting[h.head.Workload.ID])
		h.stale = known.stale
		for b := range known.behind {
			if w := s.waiting[b.head().Workload.ID]; w != nil && w.bucket != nil && w.bucket.atOpen < 0 {
				h.holdBack(w.bucket)
			}
		}
	}
}

// wakeTrial is Wake of the fleets for a state whose variants are not parked there:
// it finds out by looking who may fit now.
func (s *State) wakeTrial() {
	for _, key := range slices.Sorted(maps.Keys(s.variants)) {
		v := s.variants[key]
		for _, cluster := range slices.Sorted(maps.Keys(v.verdicts)) {
			if verdict := s.fleets[cluster].Solve(v.w, searchBudget); verdict.Outcome == placement.DoesNotFit {
				v.verdicts[cluster] = verdict
			} else {
				s.doubt(v, cluster)
			}
		}
	}
}
