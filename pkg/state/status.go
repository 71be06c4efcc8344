package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Status takes in what the dispatcher knows of a workload's objects, and when it
// said so, zero being now; unless another one has replaced it.
func (m *State) Status(s *event.GangStatus, said, now time.Time) {
	if s.Session < m.dispatchers[s.Cluster] {
		return
	}
	m.dispatchers[s.Cluster] = s.Session
	m.status(s, reportedAt(said, now), now)
}

func (m *State) status(s *event.GangStatus, said, now time.Time) {
	s.Message = sanitize(s.Message)
	e := m.live.Get(s.Workload)
	if e == nil {
		m.recovery.finishUnknownRemoval(s, now)
		return
	}
	m.recovery.finishRemoval(e, s, now)
	if s.Attempt != e.Attempt || s.Cluster != e.Cluster || !e.Holding || m.frozen(e) {
		return
	}
	if s.Later > e.Attempt {
		m.recovery.handleLaterAttempt(e, s.Later, now)
		return
	}
	m.inquiries.dispatcherAnswers(e, s)
	m.updateCreated(e, s)
	if s.Sizes != nil {
		e.sizesAt = said
		m.sizing.updateSizes(e, s)
		if e.Phase == workload.Running { // fewer pods may be wanted now
			m.healing.checkReadiness(e, now)
		}
	}
	if s.Created {
		e.updateLastUsed(s.LastUsed, said)
	}
	switch {
	case s.Refused:
		m.fail(e, s, workload.ReasonRefused, now)
	case s.Outcome != "":
		m.finishJob(e, s, now)
	case s.Gone && !tearingDown(e):
		m.tearDown(e, workload.Cancelling, &workload.Reason{
			Kind: workload.ReasonDeleted, Message: fmt.Sprintf("%s %s/%s was deleted, not by Muster", e.Kind, e.Namespace, e.Name),
		}, now)
	case s.Created && e.Phase == workload.Admitted:
		m.transition(e, workload.Dispatched, e.Reason, now)
		m.checkRunning(e, now)
	}
	switch {
	case s.Refused || s.Released && tearingDown(e): // without Gone or Outcome nothing is released
		m.release(e, now)
	case (s.Created || s.Message != "") && s.Outcome == "" && !tearingDown(e):
		m.setStartingReason(e, s.Message, now)
	}
	if m.live.Has(e) && e.Holding {
		m.sizing.scaleDownApproved(e, s.Yielded, now)
		m.evaluate(e, nil, now)
	}
}

// fail ends a workload whose object Kubernetes does not take.
func (m *State) fail(e *entry, s *event.GangStatus, kind workload.ReasonKind, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	m.end(e, workload.Failed, &workload.Reason{Kind: kind, Message: s.Message}, now)
}

func (m *State) finishJob(e *entry, s *event.GangStatus, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	phase := workload.Succeeded
	if s.Outcome == event.OutcomeFailed {
		phase = workload.Failed
		if t := e.Life.Tolerance; t != nil && t.RetryFailed {
			if e.Phase != workload.Evicting {
				m.evictForFault(e, &workload.Reason{Kind: workload.ReasonPodLost, Message: s.Message}, now)
			}
			return
		}
	}
	m.end(e, phase, &workload.Reason{Kind: workload.ReasonJobEnded, Message: s.Message}, now)
}

// Undeliverable ends a workload whose command to start cannot be sent, ever. A
// dispatcher has not seen it, so there is nothing to tear down.
func (m *State) Undeliverable(id workload.ID, why string, now time.Time) {
	e := m.live.Get(id)
	if e == nil || e.Phase != workload.Admitted {
		return
	}
	m.status(&event.GangStatus{
		Workload: id, Cluster: e.Cluster, Attempt: e.Attempt, Refused: true,
		Message: "the command to start the workload cannot be published: " + why,
	}, now, now)
}
