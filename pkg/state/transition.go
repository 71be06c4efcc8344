package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// IllegalTransition is a change of phase that workload.Phase.MayBecome forbids: a
// defect of this package.
type IllegalTransition struct {
	Workload workload.ID
	Attempt  int
	From, To workload.Phase
	At       time.Time
}

// transition moves a workload into a phase: it checks that the phase may follow, sets
// the times of the phase, and records the change in the history and in an event. The
// caller changes all other fields first, so that the recorded state is complete.
//
// An illegal transition is taken, too, and reported by DrainIllegalTransitions. By then
// the caller has changed reservations and commands; a workload that kept its old phase
// would contradict them, and its pods could outlive their reservation. Postgres refuses
// the commit if the rows break a promise. Tests fail on every report.
func (l *lifecycle) transition(e *entry, to workload.Phase, reason *workload.Reason, now time.Time) {
	if !mayBecome(e.Phase, to) {
		l.illegal = append(l.illegal, IllegalTransition{Workload: e.ID, Attempt: e.Attempt, From: e.Phase, To: to, At: now})
	}
	if to == workload.Running {
		l.learnStart(e, now)
	}
	l.setPhase(e, to, reason, now)
}

// mayBecome is workload.Phase.MayBecome with one exception: a workload that is being
// cancelled, for example at the end of its run time, may be cancelled by its owner, too,
// which ends its grace period.
func mayBecome(from, to workload.Phase) bool {
	return from.MayBecome(to) || from == workload.Cancelling && to == workload.Cancelling
}

// setPhase is transition without the check. Only recovery calls it directly: a ledger that
// was restored to an older state has missed the transitions between its phase and the one
// that a stream, a later submission or a status reports.
func (l *lifecycle) setPhase(e *entry, to workload.Phase, reason *workload.Reason, now time.Time) {
	e.Phase, e.Reason = to, reason
	switch {
	case to == workload.Queued:
		e.EvictAt = time.Time{}
		e.Times.Admitted, e.Times.Dispatched, e.Times.Running = time.Time{}, time.Time{}, time.Time{}
	case to == workload.Admitted:
		e.EvictAt, e.NotBefore = time.Time{}, time.Time{}
		e.Times.Admitted = now
		l.updateProgress(e)
	case to == workload.Dispatched:
		e.Times.Dispatched = now
	case to == workload.Running:
		e.Times.Running = now
		if e.Times.Dispatched.IsZero() { // the dispatcher's status comes later
			e.Times.Dispatched = now
		}
		l.updateProgress(e)
	case to.Final():
		e.Hold = nil
		e.Times.Finished = now
	}
	l.emitChanged(e, now)
}

// DrainIllegalTransitions returns the illegal transitions since the last call.
func (s *State) DrainIllegalTransitions() []IllegalTransition {
	drained := s.illegal
	s.illegal = nil
	return drained
}
