package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Checkpoint takes in that a workload has saved its work. It reports whether the workload is
// live. What is too near to the last checkpoint is not noted.
func (s *State) Checkpoint(c *event.WorkloadCheckpoint, now time.Time) bool {
	e, live := s.asked(c.Workload, c.Submitter)
	if e == nil || c.Attempt != 0 && c.Attempt != e.Attempt { // of an attempt that is over
		return live
	}
	if !e.mayHaveSaved() {
		s.emitRefusal(e, workload.ReasonInvalid, fmt.Sprintf("%sit is %s, and only a workload that runs has work to save", event.NotSaved, e.Phase), now)
		return true
	}
	at := c.At
	if at.IsZero() {
		at = now
	}
	s.saved(e, at, now)
	if e.Saved().Last(e.Attempt).IsZero() {
		s.emitRefusal(e, workload.ReasonInvalid, fmt.Sprintf("%sthe attempt was admitted at %s, and %s is not after that",
			event.NotSaved, e.Times.Admitted.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339)), now)
		return true
	}
	s.emit(now, event.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: e.Record})
	return true
}

// mayHaveSaved reports whether the workload runs, or still has the grace of its end.
func (e *entry) mayHaveSaved() bool {
	switch e.Phase {
	case workload.Running, workload.Evicting, workload.Cancelling:
		return e.Holding && !e.Times.Running.IsZero()
	default:
		return false
	}
}

// saved takes in when an attempt has saved its work, and when it reported that.
func (l *lifecycle) saved(e *entry, at, reported time.Time) {
	if !e.noteSaved(at, reported) {
		return
	}
	l.changed.workloads[e.ID] = e
	l.updateProgress(e)
}

// noteSaved notes a checkpoint, and reports whether it changes what is known. A time in the
// future counts as the time of the report, once. An annotation that has gone, which is the
// zero time, takes nothing back.
func (e *entry) noteSaved(at, reported time.Time) bool {
	if at.IsZero() || e.Saved().HasCome(e.Attempt, at) {
		return false
	}
	last, next := e.Saved().Last(e.Attempt), e.Saved().Next(e.Attempt, at, reported)
	noted := at
	if at.After(reported) {
		noted = reported
	}
	if !noted.After(e.Times.Admitted) || !last.IsZero() && next.At.Sub(last) < workload.SavedApart {
		return false
	}
	e.SetSaved(next)
	return true
}
