package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Ahead is what the streams have and the ledger does not know: a term finds it when
// Postgres was restored to a state older than what was published from it.
type Ahead struct {
	// Commands are the last ones of their workloads.
	Commands []*event.GangCommand `json:"commands,omitempty"`
	// LastRecords are the last states of workloads that events reported. Their name in the
	// decision log is stored, and never changes.
	LastRecords []workload.Record `json:"told,omitempty"`
	// Lost are those of them that were published as queued and are nowhere any more.
	Lost []workload.Record `json:"lost,omitempty"`
	// AskAgain: the database was replaced. AdmissionChecks are asked again, because what they
	// answered may be lost: those of the workloads in Ask, or of all where it is empty, as it
	// is in older decision logs.
	AskAgain bool          `json:"askAgain,omitempty"`
	Ask      []workload.ID `json:"ask,omitempty"`
}

// Empty reports whether the streams have nothing that the ledger does not know.
func (a Ahead) Empty() bool { return len(a.Commands) == 0 && len(a.LastRecords) == 0 }

// Has reports whether the workload is live.
func (s *State) Has(id workload.ID) bool { return s.live.Get(id) != nil }

// Ahead brings dispatchers and readers back to what the ledger has. It comes at the
// beginning of a term, before the statuses are read, in as many parts as keep each commit small:
//
//   - an end that was published counts, because it is not to be done twice;
//   - what was admitted and is not is removed, and may be admitted again once that
//     is seen gone; the number of an attempt that was published is not used again;
//   - of everything else the present state is published again;
//   - numbers of requests that the ledger has forgotten are not used again.
func (s *State) Ahead(a Ahead, now time.Time) {
	s.recovery.restored = true
	for _, published := range a.LastRecords {
		s.recovery.noteLostChange(published.ID)
		switch e := s.live.Get(published.ID); {
		case e == nil:
			s.removals.noteUsed(published)
		case published.Phase.Final() && !published.Holding && published.Attempt >= e.Attempt:
			s.recovery.restoreEnd(e, published, now)
		default:
			s.emit(now, event.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: e.Record})
		}
	}
	for _, lost := range a.Lost {
		s.removals.noteUsed(lost)
		if s.refused(lost.ID) {
			continue
		}
		s.emit(now, event.EventsSubject(lost.Queue, lost.ID), 0, &event.WorkloadRejected{Workload: lost.ID, Queue: lost.Queue, Reason: workload.Reason{
			Kind: workload.ReasonRestored, Message: "the workload was lost when the database was restored to an older state; submit it again",
		}})
	}
	again := map[string]bool{} // subjects
	for _, command := range a.Commands {
		if s.recovery.recoverCommand(command, now) {
			again[event.DispatchSubject(command.Cluster, command.Workload)] = true
		}
	}
	for i := range a.LastRecords {
		s.recovery.removeReported(&a.LastRecords[i], now)
	}
	if len(again) > 0 {
		s.ResendCommands(now, func(subject string) bool { return again[subject] })
	}
	for _, published := range a.LastRecords {
		s.recovery.skipAttempts(published, now)
		s.recovery.skipNumbers(published)
	}
	if a.AskAgain {
		s.recovery.askChecksAgain(a.Ask, now)
	}
}

// recovery brings dispatchers and readers back to the ledger after that was restored to a
// state older than what was published from it.
type recovery struct{ *lifecycle }

// skipNumbers passes over the numbers by which events say that the workload was asked about,
// also for the terms to come.
func (r *recovery) skipNumbers(published workload.Record) {
	e := r.live.Get(published.ID)
	if e == nil || published.Provisioning == nil {
		return
	}
	known := workload.Provisioning{}
	if e.Provisioning != nil {
		known = *e.Provisioning
	}
	next := known
	if !known.Open {
		next.Number = max(known.Number, published.Provisioning.Number)
	}
	if asked := published.Provisioning.Checks; asked != nil && (known.Checks == nil || !known.Checks.Asked && known.Checks.Number < asked.Number) {
		checks := workload.Checks{Number: asked.Number}
		if known.Checks != nil {
			checks.Retries = known.Checks.Retries
		}
		next.Checks = &checks
	}
	if next.Number != known.Number || next.Checks != known.Checks {
		e.Provisioning, r.changed.workloads[e.ID] = &next, e
	}
}

// skipAttempts passes over the attempts that events have named: what was published of
// them must not change. There may be no command of them, because events and commands are
// published beside each other.
func (r *recovery) skipAttempts(published workload.Record, now time.Time) {
	next := published.Attempt
	if published.Phase != workload.Queued {
		next++
	}
	if e := r.live.Get(published.ID); e != nil {
		r.skipTo(e, next, now)
	}
}

// skipTo has a waiting workload go on with a later attempt.
func (r *recovery) skipTo(e *entry, next int, now time.Time) {
	if e.Phase != workload.Queued || r.removals.removing[e.ID] || next <= e.Attempt {
		return
	}
	e.Attempt = next
	r.emitChanged(e, now)
}

// restoreEnd ends a workload whose end was published and is missing in the ledger.
func (r *recovery) restoreEnd(e *entry, published workload.Record, now time.Time) {
	reason := &workload.Reason{Kind: workload.ReasonRestored, Message: "the workload had ended before the database was restored to an older state"}
	if published.Reason != nil {
		reason = &workload.Reason{Kind: published.Reason.Kind, Message: sanitize(published.Reason.Message)}
	}
	if e.Phase == workload.Queued {
		r.withdrawRequest(e, now)
		r.withdrawChecks(e, "the workload has ended", now)
		r.admission.Dequeue(e.ID)
	} else {
		r.emitCommand(e, event.Forgotten, now)
		r.closeChecks(e, "the workload has ended", now)
		r.free(e)
	}
	r.setPhase(e, published.Phase, reason, now) // from any phase
	r.forget(e)
}

// recoverCommand deals with a command that the ledger does not know. It reports whether
// the ledger's own command is to be sent again.
func (r *recovery) recoverCommand(c *event.GangCommand, now time.Time) (again bool) {
	switch e := r.live.Get(c.Workload); {
	case e == nil:
		r.removals.noteUsed(workload.Record{Workload: workload.Workload{ID: c.Workload}, Attempt: c.Attempt, Holding: true})
		if c.State != event.Forgotten && !r.refused(c.Workload) { // the dispatcher's sweep removes it
			r.removeUnknown(c, now)
		}
	case hasRequest(e) && c.Attempt == e.Attempt && c.State == event.Provision && c.Provision != nil && c.Provision.Name == e.Provisioning.Name:
		return true
	case e.Phase == workload.Queued && c.Attempt >= e.Attempt && c.State != event.Forgotten:
		r.passNumber(e, c, now)
		r.removeAttempt(e, c, now)
	case e.Phase == workload.Queued: // it is over
		if hasRequest(e) { // and so is the request: nodes are asked for again
			r.passNumber(e, c, now)
			r.enqueue(e)
		}
		r.skipTo(e, c.Attempt+1, now)
	case c.Attempt == e.Attempt && c.Cluster == e.Cluster:
		if c.State == event.Absent && !tearingDown(e) {
			r.evictNow(e, restoredReason("attempt %d in cluster %q was being removed when the database was restored to an older state", c), now)
			return false
		}
		return true
	case c.Attempt <= e.Attempt || c.State == event.Forgotten: // it is over
	case !tearingDown(e) || e.Phase == workload.Evicting:
		r.free(e) // no later attempt began before all pods of this one were gone
		r.removeAttempt(e, c, now)
	case c.Cluster == e.Cluster: // it ends, and with it the attempt that is there
		e.Attempt = c.Attempt
		r.emitCommand(e, event.Absent, now)
		r.emitChanged(e, now)
	default:
		r.removeUnknown(c, now)
	}
	return false
}

// handleLaterAttempt deals with an attempt that the ledger does not know, and that only
// the cluster reports.
func (r *recovery) handleLaterAttempt(e *entry, attempt int, now time.Time) {
	c := r.command(e, event.Absent)
	c.Attempt = attempt
	r.recoverCommand(c, now)
}

// removeLater has a removal end with the last attempt of which the dispatcher has a command
// or finds an object: it does not obey the removal of an earlier one.
func (r *recovery) removeLater(e *entry, s *event.GangStatus, now time.Time) {
	last := max(s.Attempt, s.Later)
	if r.removals.removing[e.ID] && !r.frozen(e) && s.Cluster == e.Cluster && last >= e.Attempt {
		r.handleLaterAttempt(e, last, now)
	}
}
