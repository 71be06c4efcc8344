package admission

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Question is what the owner of a state hands to another goroutine that explains why a
// workload waits: the workload, and what the owner knows of it.
type Question struct {
	// Known is what the owner can tell at once: queue, position, reason.
	Known   workload.Explanation
	waiting Waiting
}

// Ask returns the question why a workload waits; false when it does not wait. The cost
// is linear in the number of gangs of its queue and priority.
func (s *State) Ask(id workload.ID) (Question, bool) {
	w := s.waiting.Get(id)
	if w == nil {
		return Question{}, false
	}
	q := Question{waiting: s.resubmittedCopy(w), Known: workload.Explanation{
		Workload: id, Queue: w.queue.name, Position: s.Position(id), Reason: *s.reason(w), PastUse: s.tree.LocalPastUsage(w.Workload.Namespace, w.Workload.Queue),
	}}
	if w.class == nil {
		q.waiting.Nominated = w.nomination(s) != nil
	}
	for _, class := range w.queue.all.list {
		q.Known.Waiting += class.Len()
	}
	return q, true
}

// Outdated reports whether a state that was made of a snapshot contradicts the question: the
// workload is held now, or no longer, or in another place. What would admit it is to be
// looked for on a newer one.
func Outdated(s *State, q Question) bool {
	w := s.waiting.Get(q.Known.Workload)
	if w == nil {
		return s.started[q.Known.Workload] != nil && !q.waiting.Grows
	}
	held := q.Known.Reason.Kind == workload.ReasonHeld
	return held != (w.held != nil) || w.queue.name != q.Known.Queue || w.Workload.Priority != q.waiting.Workload.Priority
}

// Answer explains on a state that was made of a snapshot, which may be older than the
// question. When enough returns true it stops looking for changes, and the answer is
// Partial. An answer from an incomplete snapshot is Partial, too. It names no changes if
// workloads before this one are missing, because a change would have to admit those.
func Answer(s *State, complete bool, q Question, now time.Time, enough func() bool) workload.Explanation {
	id := q.Known.Workload
	if s.waiting.Get(id) == nil {
		if s.started[id] != nil && !q.waiting.Grows {
			return q.Known // it has started in the snapshot, or is about to end
		}
		s.Enqueue(q.waiting)
	}
	found, waits := explain(s, id, now, enough)
	if !waits {
		return q.Known
	}
	answer := q.Known
	if answer.Reason.Kind == found.Reason.Kind && hasAmounts(&found.Reason) {
		answer.Reason = found.Reason // with current amounts
	}
	answer.Clusters, answer.Changes, answer.Partial = found.Clusters, found.Changes, found.Partial
	if !complete {
		answer.Partial = true
		if found.Position < answer.Position {
			answer.Changes = nil
		}
	}
	return answer
}
