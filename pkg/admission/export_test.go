package admission

import (
	"time"

	"muster.dev/muster/pkg/workload"
)

// Anew is what a decision would do that looks at all who wait. What is held for
// heads stays, and so does what is known of those who are kept back: they are
// refused until something changes that this depends on. The state stays as it is.
func Anew(s *State, now time.Time, kept ...workload.ID) (plan Plan) {
	s.rehearse(s.inLine(s.waiting.Len()), func(copied *State) {
		for _, h := range copied.holds {
			h.stale = s.holdOf(s.waiting.Get(h.head.Workload.ID)).stale
		}
		copied.newCluster, copied.grown = false, false
		for _, id := range kept {
			copied.keepBack(copied.waiting.Get(id).bucket, s.waiting.Get(id).bucket)
		}
		plan = Decide(copied, now)
	})
	return plan
}

// keepBack blocks a bucket as its like in another state is.
func (s *State) keepBack(b, like *bucket) {
	if b.atOpen < 0 {
		return // two of one bucket
	}
	s.block(b, like.reason)
	b.retryAt, b.overs, b.preempts, b.hopeless = like.retryAt, like.overs, like.preempts, like.hopeless
	if like.lacks != nil {
		b.lacks = s.optionsOf(b.queue, b.shape).like(like.lacks)
	}
	if like.behind != nil {
		s.holdOf(s.waiting.Get(like.behind.head.Workload.ID)).holdBack(b)
	}
}

// OnCopy is what a decision does on a copy of the state.
func OnCopy(s *State, now time.Time) (plan Plan) {
	s.forked(func() { plan = Decide(s.copied(), now) })
	return plan
}
