package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// checked are the workloads with a standing request to AdmissionChecks: those that wait for
// an answer, and those that have all answers until their attempt ends.
type checked map[workload.ID]*entry

// checks are the AdmissionChecks that a workload was put to last; nil before.
func (e *entry) checks() *workload.Checks {
	if e.Provisioning == nil {
		return nil
	}
	return e.Provisioning.Checks
}

// setChecks changes them; records that were emitted keep theirs.
func (e *entry) setChecks(c *workload.Checks) {
	next := workload.Provisioning{}
	if e.Provisioning != nil {
		next = *e.Provisioning
	}
	next.Checks = c
	e.Provisioning = &next
}

// askChecks puts a workload to its checks, by a number that was never used before. What a
// check has agreed to in this attempt stays.
func (l *lifecycle) askChecks(e *entry, c admission.ToCheck, now time.Time) {
	next := workload.Checks{Number: l.nextNumber(0), Asked: true, Quota: c.Quota, Flavors: c.Flavors}
	if last := e.checks(); last != nil {
		next.Number, next.Retries = l.nextNumber(last.Number), last.Retries
		if last.Asked {
			next.Checks = slices.DeleteFunc(slices.Clone(last.Checks), func(check workload.Check) bool { return check.Status != workload.CheckReady })
		}
	}
	for _, name := range c.Checks {
		if !slices.ContainsFunc(next.Checks, func(check workload.Check) bool { return check.Name == name }) {
			next.Checks = append(next.Checks, workload.Check{Name: name, Status: workload.CheckPending, Since: now.UTC()}) // as it is read from Postgres
		}
	}
	e.setChecks(&next)
	l.checked[e.ID] = e
	for i := range next.Checks {
		l.emitCheck(e, &next.Checks[i], nil, now)
	}
	l.explainChecks(e, now)
}

// nextNumber returns a number for what is asked, which was never used for the workload. Numbers
// count from 1, as Kueue's do. In a term that found the ledger older than the streams they
// begin with its epoch, because the ledger may have forgotten some. No epoch comes twice, and
// none is reached by counting, because epochs are times in microseconds.
func (l *lifecycle) nextNumber(last int) int {
	if l.restored {
		return max(last+1, int(l.epoch))
	}
	return last + 1
}

// explainChecks records whom a workload waits for.
func (l *lifecycle) explainChecks(e *entry, now time.Time) {
	e.Reason = checksReason(e.checks())
	l.admission.SetAskedReason(e.ID, e.Reason)
	l.emitChanged(e, now)
}

// checksReason names the checks that have not agreed, and since when.
func checksReason(c *workload.Checks) *workload.Reason {
	var waits []string
	for _, check := range c.Checks {
		since := check.Since.UTC().Format(time.RFC3339)
		switch {
		case check.Status == workload.CheckReady:
		case !check.Answered:
			waits = append(waits, fmt.Sprintf("AdmissionCheck %q has not answered since %s", check.Name, since))
		case check.Message == "":
			waits = append(waits, fmt.Sprintf("AdmissionCheck %q is pending since %s", check.Name, since))
		default:
			waits = append(waits, fmt.Sprintf("AdmissionCheck %q is pending since %s: %s", check.Name, since, check.Message))
		}
	}
	held := "its quota is reserved"
	if !c.Quota {
		held = "no gang is evicted for it before"
	}
	return &workload.Reason{Kind: workload.ReasonAdmissionCheck, Message: strings.Join(waits, "; ") + "; " + held}
}

// emitCheck emits what a check is asked, with the answer that was just taken in or refused.
func (l *lifecycle) emitCheck(e *entry, check *workload.Check, answer *event.CheckTaken, now time.Time) {
	wanted := &event.CheckWanted{
		Check: check.Name, Workload: e.ID, Number: e.checks().Number, Attempt: e.Attempt, Epoch: l.epoch, State: event.CheckOpen,
		Queue: e.Queue, Namespace: e.Namespace, Kind: e.Kind, Name: e.Name, Submitter: e.Submitter, Priority: e.Priority,
		Since: check.Since, QuotaReserved: e.checks().Quota, Answer: answer,
	}
	if check.Status == workload.CheckReady {
		wanted.State = event.CheckAnswered
	}
	if config := l.admission.Quota().AdmissionCheck(check.Name); config != nil {
		wanted.ControllerName = config.ControllerName
		if p := config.Parameters; p != nil {
			wanted.Parameters = &event.CheckParameters{APIGroup: p.APIGroup, Kind: p.Kind, Name: p.Name}
		}
	}
	for _, set := range e.PodSets {
		of := event.CheckedPodSet{Name: set.Name, Count: set.Count, Requests: set.Template.Requests}
		for _, f := range e.checks().Flavors {
			if f.PodSet == set.Name {
				of.Flavors = f.Flavors
			}
		}
		wanted.PodSets = append(wanted.PodSets, of)
	}
	l.emit(now, event.CheckSubject(check.Name, e.ID), 0, wanted)
}

// lastAnswer is the answer that a check has given and that did not decide yet; nil for none.
func lastAnswer(e *entry, check *workload.Check) *event.CheckTaken {
	if !check.Answered || check.Status == workload.CheckReady {
		return nil
	}
	return &event.CheckTaken{Number: e.checks().Number, Status: check.Status, Message: check.Message}
}

// emitCheckClosed says that no answer about a workload counts any more.
func (l *lifecycle) emitCheckClosed(check string, id workload.ID, number int, why string, answer *event.CheckTaken, now time.Time) {
	l.emit(now, event.CheckSubject(check, id), forgottenFor, &event.CheckWanted{
		Check: check, Workload: id, Number: number, Epoch: l.epoch, State: event.CheckClosed, Why: why, Answer: answer,
	})
}

// closeChecks ends a standing request. Its number is not used again.
func (l *lifecycle) closeChecks(e *entry, why string, now time.Time) {
	if e.checks() == nil || !e.checks().Asked {
		return
	}
	for _, check := range e.checks().Checks {
		l.emitCheckClosed(check.Name, e.ID, e.checks().Number, why, nil, now)
	}
	e.setChecks(&workload.Checks{Number: e.checks().Number, Retries: e.checks().Retries, RetryAfterSeconds: e.checks().RetryAfterSeconds})
	delete(l.checked, e.ID)
	l.changed.workloads[e.ID] = e
}

// endRetries notes that a workload is admitted.
func (e *entry) endRetries() {
	if e.checks() != nil && (e.checks().Retries > 0 || e.checks().RetryAfterSeconds > 0) {
		admitted := *e.checks()
		admitted.Retries, admitted.RetryAfterSeconds = 0, 0
		e.setChecks(&admitted)
	}
}
