package admission

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
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
	e.resume()
	e.priority()
	e.fewerPods()
	e.moreQuota()
	e.moreNodes()
	e.afterEnd()
	return e.found, true
}

type explainer struct {
	s      *State
	w      *Waiting
	now    time.Time
	enough func() bool
	found  workload.Explanation
	trials int
}

// works tries a change by a decision.
func (e *explainer) works(change func(*State)) bool { return e.try(nil, change) }

// worksWith tries another configuration by a decision.
func (e *explainer) worksWith(config quota.Config) bool { return e.try(&config, nil) }

func (e *explainer) try(config *quota.Config, change func(*State)) bool {
	if e.trials++; e.trials > mostTrials || e.enough() {
		e.found.Partial = true
		return false
	}
	return e.s.wouldAdmit(e.w.Workload.ID, e.now, config, change)
}

func (e *explainer) config() quota.Config { return e.s.tree.Config() }

func (e *explainer) suggest(c workload.Change, format string, args ...any) {
	c.Message = fmt.Sprintf(format, args...)
	e.found.Changes = append(e.found.Changes, c)
}

// least returns the smallest n from 1 to most for which enough holds, given that
// it holds for all larger ones; 0 when it does not hold for most.
func least(most int, enough func(int) bool) int {
	if most < 1 || !enough(most) {
		return 0
	}
	low, high := 1, most
	for low < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
