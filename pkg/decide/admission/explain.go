package admission

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Bounds of the work on one explanation.
const (
	nodeKinds  = 8   // kinds of nodes to suggest
	mostEnds   = 256 // started gangs whose end is tried
	singleEnds = 3   // gangs to name of which one end is enough
	mostTrials = 64
)

// Explain returns why a workload waits, and the smallest changes each of which would
// admit it now. Each change has been tried by a decision on a copy of the state, so it
// admits the workload unless something else happens first. It is expensive: call it
// when a user asks. It reports false for a workload that does not wait. The state stays
// as it is.
func Explain(s *State, id workload.ID, now time.Time) (workload.Explanation, bool) {
	return explain(s, id, now, func() bool { return false })
}

// explain is Explain, but stops trying changes when enough returns true.
func explain(s *State, id workload.ID, now time.Time, enough func() bool) (workload.Explanation, bool) {
	w := s.waiting.Get(id)
	if w == nil {
		return workload.Explanation{}, false
	}
	e := &explainer{s: s, w: w, now: now, enough: enough, found: workload.Explanation{
		Workload: id, Queue: w.queue.name, Position: s.Position(id), Reason: *s.reason(w),
	}}
	for _, class := range w.queue.all.list {
		e.found.Waiting += class.Len()
	}
	if present, ok := CurrentReasons(s, now, id)[id]; ok {
		e.found.Reason = *present
	}
	e.clusters()
	e.resume()
	e.priority()
	e.fewerPods()
	e.moreQuota()
	e.openNode()
	e.moreNodes()
	e.afterEnd()
	return e.found, true
}
