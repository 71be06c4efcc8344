package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Bounds of the back-off of a workload whose check gives none: as of requests for nodes.
const (
	checkBackoff     = time.Minute
	checkBackoffMost = 30 * time.Minute
)

// CheckAnswered applies the answer of an AdmissionCheck. An answer that does not count is
// refused, and the question of the check has that. It reports whether the workload is live.
func (s *State) CheckAnswered(a *event.CheckAnswer, now time.Time) bool {
	e := s.live.Get(a.Workload)
	if e != nil && s.frozen(e) {
		return true
	}
	taken := &event.CheckTaken{Number: a.Number, Status: a.Status, Message: sanitize(a.Message)}
	if len(a.Status) > len(workload.CheckRejected) {
		taken.Status = ""
	}
	if e == nil {
		taken.Refused = "the workload has ended"
		s.emitCheckClosed(a.Check, a.Workload, a.Number, taken.Refused, taken, now)
		return false
	}
	check := e.checks().Check(a.Check)
	if check == nil {
		number := 0
		if e.checks() != nil {
			number = e.checks().Number
		}
		taken.Refused = "the workload is not put to this check now"
		s.emitCheckClosed(a.Check, a.Workload, number, taken.Refused, taken, now)
		return true
	}
	added, refused := s.examine(e, check, a)
	switch {
	case refused != "":
		taken.Refused = refused
		s.emitCheck(e, check, taken, now)
	case check.Answered && check.Status == a.Status && (check.Message == taken.Message || a.Status == workload.CheckReady): // it comes again
	default:
		s.takeAnswer(e, a, taken, added, now)
	}
	return true
}

// examine returns what an answer adds to the pods, or why it does not count.
func (s *State) examine(e *entry, check *workload.Check, a *event.CheckAnswer) (added []workload.PodSetUpdate, refused string) {
	if fault := a.Fault(); fault != "" {
		return nil, fault
	}
	switch {
	case a.Number != e.checks().Number:
		return nil, fmt.Sprintf("it answers request %d, and the present one is %d", a.Number, e.checks().Number)
	case tearingDown(e) || e.CancelRequested:
		return nil, fmt.Sprintf("the workload is %s and ends", e.Phase)
	case check.Status == workload.CheckReady && a.Status == workload.CheckPending:
		return nil, fmt.Sprintf("the check is Ready already; only %s or %s can withdraw that", workload.CheckRetry, workload.CheckRejected)
	case check.Status == workload.CheckReady && a.Status == workload.CheckReady:
		if added, conflict := newUpdates(e, a.PodSetUpdates); len(added) > 0 || conflict != "" {
			return nil, fmt.Sprintf("the check is Ready already; answer %s first to change its podSetUpdates", workload.CheckRetry)
		}
		return nil, ""
	}
	return newUpdates(e, a.PodSetUpdates)
}

func (s *State) takeAnswer(e *entry, a *event.CheckAnswer, taken *event.CheckTaken, added []workload.PodSetUpdate, now time.Time) {
	if before := e.checks().Check(a.Check); before.Status == workload.CheckReady && a.Status != workload.CheckReady {
		dropUpdates(e, e.checks().Updates) // while they are known
	}
	next := *e.checks()
	next.Checks = slices.Clone(next.Checks)
	check := next.Check(a.Check)
	if check.Status != a.Status || !check.Answered {
		check.Since = now.UTC() // as it is read from Postgres
	}
	check.Status, check.Answered, check.Message, check.Updates = a.Status, true, taken.Message, added
	e.setChecks(&next)
	s.changed.workloads[e.ID] = e
	s.emitCheck(e, check, taken, now)
	switch a.Status {
	case workload.CheckRetry:
		s.retryChecks(e, check, a, now)
	case workload.CheckRejected:
		s.rejectByCheck(e, check, now)
	default:
		s.checkAgreed(e, now)
	}
}

// checkAgreed has a workload tried again when all checks have agreed.
func (s *State) checkAgreed(e *entry, now time.Time) {
	switch {
	case e.Phase != workload.Queued:
	case e.checks().Pending():
		s.explainChecks(e, now)
	case !hasRequest(e):
		s.admission.Dequeue(e.ID)
		addUpdates(e, e.checks().Updates)
		e.Reason = &workload.Reason{Kind: workload.ReasonPending, Message: "its AdmissionChecks agree; the next decision considers the workload"}
		s.emitChanged(e, now)
		s.enqueue(e)
	}
}

// retryChecks has a workload wait before it is put to its checks again. One that has started
// is evicted.
func (s *State) retryChecks(e *entry, check *workload.Check, a *event.CheckAnswer, now time.Time) {
	next := *e.checks()
	next.Retries++
	next.RetryAfterSeconds = a.RetryAfterSeconds
	e.setChecks(&next)
	why := fmt.Sprintf("AdmissionCheck %q asks to be retried later", check.Name)
	if check.Message != "" {
		why += ": " + check.Message
	}
	if e.Phase != workload.Queued {
		s.evictWithGrace(e, &workload.Reason{Kind: workload.ReasonCheckRetry, Message: why}, now)
		return
	}
	s.withdrawRequest(e, now)
	s.withdrawChecks(e, "the workload is asked about again, by another number", now)
	e.NotBefore = now.Add(backoffOfCheck(e))
	e.Reason = &workload.Reason{
		Kind:    workload.ReasonBackoff,
		Message: fmt.Sprintf("back-off: its AdmissionChecks are not asked again before %s. %s", e.NotBefore.UTC().Format(time.RFC3339), why),
	}
	s.emitChanged(e, now)
	s.enqueueAs(e, true)
}

// backoffOfCheck is the wait that the check has given or, without one, a minute that doubles.
func backoffOfCheck(e *entry) time.Duration {
	if e.checks() == nil {
		return 0
	}
	if given := e.checks().RetryAfterSeconds; given > 0 {
		return time.Duration(given) * time.Second
	}
	wait := checkBackoff
	for range min(e.checks().Retries, 10) - 1 {
		wait *= 2
	}
	return min(wait, checkBackoffMost)
}

func (s *State) rejectByCheck(e *entry, check *workload.Check, now time.Time) {
	reason := &workload.Reason{Kind: workload.ReasonCheckRejected, Message: fmt.Sprintf("AdmissionCheck %q rejected it", check.Name)}
	if check.Message != "" {
		reason.Message += ": " + check.Message
	}
	if e.Phase != workload.Queued {
		s.evictWithGrace(e, reason, now)
		return
	}
	s.withdrawRequest(e, now)
	s.admission.Dequeue(e.ID)
	s.finish(e, workload.Failed, reason, now)
}
