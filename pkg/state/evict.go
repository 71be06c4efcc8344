package state

import (
	"math"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// evictNow evicts a started workload and removes its objects at once. See requeueRules for
// what the kind of the reason means for the next attempt.
func (l *lifecycle) evictNow(e *entry, reason *workload.Reason, now time.Time) {
	l.countFault(e, reason.Kind, now)
	l.tearDown(e, workload.Evicting, reason, now)
}

// evictWithGrace evicts a workload that could run on, because admission preempts it or
// drains its queue. A running one may save its work first.
func (l *lifecycle) evictWithGrace(e *entry, reason *workload.Reason, now time.Time) {
	l.countFault(e, reason.Kind, now)
	l.tearDownWithGrace(e, workload.Evicting, reason, now)
}

// addCost adds to the reason of an eviction what it loses.
func (l *lifecycle) addCost(e *entry, why *workload.Reason, now time.Time) {
	cost, text, started := l.admission.EvictionCost(e.ID, now)
	if !started {
		return
	}
	if why.Preemption == nil {
		why.Preemption = &workload.PreemptionCause{}
	}
	why.Preemption.Cost = &cost
	why.Message += "; " + text
}

// countFault counts an eviction for a fault of the workload. The count restarts when the
// workload has run for longer than the longest back-off, unless the workload sets its own
// limit.
func (l *lifecycle) countFault(e *entry, cause workload.ReasonKind, now time.Time) {
	if !requeueRules[cause].fault {
		return
	}
	ownLimit := e.Life.Tolerance != nil && e.Life.Tolerance.Retries != nil
	if !ownLimit && elapsed(now, e.Times.Running, time.Duration(l.rules(e).BackoffMost)) {
		e.Requeues = 0
	}
	if e.Requeues < math.MaxUint16 { // beyond that a limit no longer counts
		e.Requeues++
	}
}

// tearDown removes the objects at once; the next step follows their release. Evictions
// call it through evictNow, which counts.
func (l *lifecycle) tearDown(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	l.tearDownAt(e, phase, reason, now, now)
}

// tearDownWithGrace tears down a workload that could run on: its object is annotated with
// the time of the deletion, and the workload may save its work until then.
func (l *lifecycle) tearDownWithGrace(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	grace := time.Duration(l.rules(e).CheckpointGrace)
	if e.Phase != workload.Running {
		grace = 0 // it has nothing to save
	}
	l.tearDownAt(e, phase, reason, now.Add(grace), now)
}

func (l *lifecycle) tearDownAt(e *entry, phase workload.Phase, reason *workload.Reason, at, now time.Time) {
	e.EvictAt = at
	e.disruption, e.replaceAt, e.growth, e.scaleDown, e.giveUp, e.giveUpSince, e.giveUpFor = disruption{}, time.Time{}, nil, nil, nil, time.Time{}, nil
	l.admission.Leave(e.ID)
	l.transition(e, phase, reason, now)
	e.idleSince = time.Time{} // the step that ends the run reports it
	if at.After(now) {
		l.emitCommand(e, event.Present, now)
	} else {
		l.emitCommand(e, event.Absent, now)
	}
	l.setTimer(e)
}
