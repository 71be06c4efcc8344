package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// asked returns the workload of which something is asked, nil when nothing is to be done:
// it is not live, or the submitter may not ask.
func (s *State) asked(id workload.ID, submitter string) (e *entry, live bool) {
	e = s.live.Get(id)
	if e == nil || s.frozen(e) {
		return nil, false
	}
	if submitter != "" && !s.queues[e.Queue].Rules.MaySubmit(submitter, e.Namespace) {
		return nil, true // intake has answered the submitter; this is the second look
	}
	return e, true
}

// emitRefusal records why what was asked of a workload is not done.
func (s *State) emitRefusal(e *entry, kind workload.ReasonKind, why string, now time.Time) {
	record := e.Record
	record.Reason = &workload.Reason{Kind: kind, Message: why}
	s.emit(now, event.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: record})
}

// withWhy adds the reason that a person has given.
func withWhy(message, why string) string {
	if why == "" {
		return message
	}
	return message + ": " + sanitize(why)
}

// Hold keeps a workload that waits from admission, or lets it be admitted again. It keeps
// its place by submission. One that is being evicted is held once it waits. It reports
// whether the workload is live.
func (s *State) Hold(h *event.WorkloadHold, now time.Time) bool {
	e, live := s.asked(h.Workload, h.Submitter)
	if e == nil {
		return live
	}
	if h.Resume {
		s.resume(e, h, now)
		return true
	}
	switch {
	case e.CancelRequested || e.Phase != workload.Queued && e.Phase != workload.Evicting:
		s.emitRefusal(e, workload.ReasonInvalid, fmt.Sprintf(
			"%sit is %s, and only a waiting workload can be held; `muster requeue` returns an admitted one to its queue", event.NotHeld, e.Phase), now)
		return true
	case e.Hold != nil && (!e.Hold.Own || h.Submitter != ""):
		s.emitRefusal(e, workload.ReasonInvalid, event.NotHeld+"it is "+e.Hold.Message(), now)
		return true
	}
	hold := &workload.Hold{Since: now.UTC(), By: sanitize(h.By), Why: sanitize(h.Why), Own: h.Submitter != ""} // UTC, as it is read from Postgres
	s.setHold(e, hold, &workload.Reason{Kind: workload.ReasonHeld, Message: hold.Message()}, now)
	return true
}

func (s *State) resume(e *entry, h *event.WorkloadHold, now time.Time) {
	switch {
	case e.Hold == nil:
		s.emitRefusal(e, workload.ReasonInvalid, event.NotResumed+"it is not held", now)
	case h.Submitter != "" && !e.Hold.Own:
		s.emitRefusal(e, workload.ReasonInvalid, event.NotResumed+"it is "+e.Hold.Message(), now)
	default:
		message := withWhy(fmt.Sprintf("%s resumed it", sanitize(h.By)), h.Why)
		s.setHold(e, nil, &workload.Reason{Kind: workload.ReasonPending, Message: message}, now)
	}
}

// setHold holds a workload, or resumes it with nil.
func (s *State) setHold(e *entry, hold *workload.Hold, reason *workload.Reason, now time.Time) {
	if e.Phase != workload.Queued { // it keeps the reason of its eviction
		e.Hold = hold
		s.emitChanged(e, now)
		return
	}
	if hold != nil {
		s.withdrawRequest(e, now) // the nodes would wait for nothing
		s.withdrawChecks(e, "the workload is held", now)
	}
	s.admission.Dequeue(e.ID)
	delete(s.staleReasons, e.ID)
	delete(s.returning, e.ID) // it does not wait for places alone
	e.Hold, e.Reason = hold, reason
	s.emitChanged(e, now)
	s.enqueueAs(e, hold != nil)
}

// Requeue evicts a workload that has been admitted: it has the grace of an eviction, and
// then waits at its place by submission. It reports whether the workload is live.
func (s *State) Requeue(r *event.WorkloadRequeue, now time.Time) bool {
	e, live := s.asked(r.Workload, r.Submitter)
	if e == nil || r.Attempt != 0 && r.Attempt != e.Attempt { // a message that comes again
		return live
	}
	if e.Phase.Final() || e.Phase == workload.Queued || tearingDown(e) {
		s.emitRefusal(e, workload.ReasonInvalid, fmt.Sprintf("%sit is %s, and only a workload that was admitted can be requeued", event.NotRequeued, e.Phase), now)
		return true
	}
	message := withWhy(fmt.Sprintf("requeued by %s", sanitize(r.By)), r.Why)
	reason := &workload.Reason{Kind: workload.ReasonRequeued, Message: message}
	s.addCost(e, reason, now)
	s.evictWithGrace(e, reason, now)
	return true
}

// SetPriority changes the priority of a workload, which counts from now on for its place,
// for evictions by it and for its own. It reports whether the workload is live.
func (s *State) SetPriority(p *event.WorkloadPriority, now time.Time) bool {
	e, live := s.asked(p.Workload, "")
	if e == nil {
		return live
	}
	if e.CancelRequested || e.Phase.Final() {
		s.emitRefusal(e, workload.ReasonInvalid, fmt.Sprintf("%sit is %s and ends", event.NotRanked, e.Phase), now)
		return true
	}
	if e.Priority == p.Priority {
		s.emit(now, event.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: e.Record})
		return true
	}
	message := withWhy(fmt.Sprintf("%s set its priority to %d, from %d", sanitize(p.By), p.Priority, e.Priority), p.Why)
	s.changePriority(e, p.Priority, &workload.Reason{Kind: workload.ReasonPending, Message: message}, now)
	return true
}

// changePriority sets the priority. The reason is for the history and the event: one that
// waits gets another one in the next decision, and one that has started keeps its own.
func (s *State) changePriority(e *entry, priority int32, reason *workload.Reason, now time.Time) {
	waits, kept := e.Phase == workload.Queued, e.Reason
	if waits {
		s.admission.Dequeue(e.ID) // it is ordered by the old one
		delete(s.staleReasons, e.ID)
	}
	e.Priority, e.Reason = priority, reason
	s.emitChanged(e, now)
	s.admission.SetPriority(e.ID, priority)
	if waits {
		s.enqueue(e)
		return
	}
	e.Reason = kept
	s.emitChanged(e, now)
}
