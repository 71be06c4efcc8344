package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Status applies the dispatcher's status of a workload's objects, and when it
// reported that, zero being now; unless another dispatcher has replaced it.
func (s *State) Status(reported *event.GangStatus, at, now time.Time) {
	if reported.Session < s.dispatchers[reported.Cluster] {
		return
	}
	s.dispatchers[reported.Cluster] = reported.Session
	s.hear(reported.Cluster, Dispatcher, now)
	s.status(reported, reportedAt(at, now), now)
}

func (s *State) status(reported *event.GangStatus, at, now time.Time) {
	reported.Message = sanitize(reported.Message)
	e := s.live.Get(reported.Workload)
	if e == nil {
		s.recovery.finishUnknownRemoval(reported, now)
		return
	}
	s.recovery.removeLater(e, reported, now)
	s.recovery.finishRemoval(e, reported, now)
	if !s.frozen(e) {
		s.observeRequest(e, reported, now)
	}
	if reported.Attempt != e.Attempt || reported.Cluster != e.Cluster || !e.Holding || s.frozen(e) {
		return
	}
	if reported.Later > e.Attempt {
		s.recovery.handleLaterAttempt(e, reported.Later, now)
		return
	}
	s.inquiries.dispatcherAnswered(e, reported.Answers, now)
	s.updateCreated(e, reported)
	if reported.Sizes != nil {
		e.sizesAt = at
		s.sizing.updateSizes(e, reported)
		if e.Phase == workload.Running { // fewer pods may be wanted now
			s.healing.checkReadiness(e, now)
		}
	}
	if reported.Created {
		e.permitted = reported.Permitted
		e.updateLastUsed(reported.LastUsed, at)
		if !e.Phase.Final() {
			s.saved(e, reported.LastCheckpoint, at)
		}
	}
	s.followObject(e, reported, now)
	s.followRelease(e, reported, now)
	if s.live.Has(e) && e.Holding {
		s.sizing.scaleDownApproved(e, reported.Yielded, now)
		s.evaluate(e, nil, now)
	}
}

// followObject changes the phase of a workload by what has become of its object.
func (s *State) followObject(e *entry, reported *event.GangStatus, now time.Time) {
	switch {
	case reported.Refused && reported.Mendable && !e.Phase.Final():
		if !tearingDown(e) {
			s.evictNow(e, &workload.Reason{Kind: workload.ReasonNotCreated, Message: reported.Message}, now)
		}
	case reported.Refused:
		s.fail(e, reported, workload.ReasonRefused, now)
	case reported.Outcome != "":
		s.finishJob(e, reported, now)
	case reported.Gone && reported.Stopped && !tearingDown(e):
		s.evictNow(e, stoppedReason(e), now)
	case reported.Gone && !tearingDown(e):
		s.tearDown(e, workload.Cancelling, &workload.Reason{
			Kind: workload.ReasonDeleted, Message: fmt.Sprintf("%s %s/%s was deleted, not by Muster", e.Kind, e.Namespace, e.Name),
		}, now)
	case reported.Created && e.Phase == workload.Admitted:
		s.transition(e, workload.Dispatched, e.Reason, now)
		s.checkRunning(e, now)
	}
}

// followRelease frees the places of a workload that has released them, and else explains what
// the dispatcher reports.
func (s *State) followRelease(e *entry, reported *event.GangStatus, now time.Time) {
	switch {
	case reported.Released && tearingDown(e): // without Gone or Outcome nothing is released
		s.explainLeft(e, leftBehind, reported.Left)
		s.release(e, now)
	case reported.Refused:
		s.release(e, now)
	case (reported.Created || reported.Message != "") && reported.Outcome == "" && !tearingDown(e):
		s.deadlines.explainReported(e, reported.Message, now)
	case tearingDown(e):
		if s.explainLeft(e, waitsForLeft, reported.Left) {
			s.emitChanged(e, now)
		}
	}
}

// fail ends a workload whose object Kubernetes does not take.
func (s *State) fail(e *entry, reported *event.GangStatus, kind workload.ReasonKind, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	s.end(e, workload.Failed, &workload.Reason{Kind: kind, Message: reported.Message}, now)
}

func (s *State) finishJob(e *entry, reported *event.GangStatus, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	phase := workload.Succeeded
	if reported.Outcome == event.OutcomeFailed {
		phase = workload.Failed
		if t := e.Life.Tolerance; t != nil && t.RetryFailed {
			if e.Phase != workload.Evicting {
				s.evictNow(e, &workload.Reason{Kind: workload.ReasonPodLost, Message: reported.Message}, now)
			}
			return
		}
	}
	s.end(e, phase, &workload.Reason{Kind: workload.ReasonJobEnded, Message: reported.Message}, now)
}

// Undeliverable ends a workload whose command to start cannot be sent, ever. A
// dispatcher has not seen it, so there is nothing to tear down.
func (s *State) Undeliverable(id workload.ID, why string, now time.Time) {
	e := s.live.Get(id)
	if e == nil || e.Phase != workload.Admitted {
		return
	}
	s.status(&event.GangStatus{
		Workload: id, Cluster: e.Cluster, Attempt: e.Attempt, Refused: true,
		Message: "the command to start the workload cannot be published: " + why,
	}, now, now)
}

// updateCreated takes in what was created for the present attempt. Pods that were
// taken for the gang's may turn out to be others.
func (s *State) updateCreated(e *entry, reported *event.GangStatus) {
	uids := created(reported)
	if len(uids) == 0 || slices.Equal(uids, e.created) {
		return
	}
	e.created = uids
	key := gangKey{e.Cluster, e.ID}
	if g := s.gangs[key]; g != nil {
		s.classifyPods(key, g)
		s.countUnreserved(key)
	}
}
