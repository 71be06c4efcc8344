package admission

import (
	"time"

	"muster.dev/muster/pkg/workload"
)

// Question is what the owner of a state hands over, so that another goroutine can say
// why a workload waits: where it stands, and itself.
type Question struct {
	// Known is what the owner knows at once: queue, position, reason.
	Known workload.Explanation
	asked Waiting
}

// Ask returns the question of why a workload waits; false when it does not. It costs
// as much as there are gangs of its queue and priority.
func (s *State) Ask(id workload.ID) (Question, bool) {
	w := s.waiting.Get(id)
	if w == nil {
		return Question{}, false
	}
	q := Question{asked: s.asked(w), Known: workload.Explanation{
		Workload: id, Queue: w.queue.name, Position: s.Position(id), Reason: *s.reason(w),
	}}
	if w.bucket == nil {
		q.asked.Claiming = w.claimed(s) != nil
	}
	for _, b := range w.queue.all.list {
		q.Known.Waiting += b.Len()
	}
	return q, true
}

// Answer explains on a state that was made of a snapshot, which need not be as new as
// the question. enough ends the looking for changes; what was found until then is the
// answer, and Partial. So is an answer of a snapshot without all who stand in line
// before the workload: a change would have to admit those, too, and no change is named.
func Answer(s *State, complete bool, q Question, now time.Time, enough func() bool) workload.Explanation {
	id := q.Known.Workload
	if s.waiting.Get(id) == nil {
		if s.started[id] != nil && !q.asked.Grows {
			return q.Known // it has started in the snapshot, or its end is near
		}
		s.Enqueue(q.asked)
	}
	found, waits := explain(s, id, now, enough)
	if !waits {
		return q.Known
	}
	answer := q.Known
	if answer.Reason.Kind == found.Reason.Kind && hasAmounts(&found.Reason) {
		answer.Reason = found.Reason // the amounts of now
	}
	answer.Changes, answer.Partial = found.Changes, found.Partial
	if !complete {
		answer.Partial = true
		if found.Position < answer.Position {
			answer.Changes = nil
		}
	}
	return answer
}
