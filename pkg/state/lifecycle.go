package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// lifecycle moves workloads through their phases, and records what follows: history,
// events, commands to dispatchers, and the timer of the next deadline. It decides nothing:
// the types above it say when a workload moves.
type lifecycle struct {
	tables
	inquiries inquiries
	removals  removals

	epoch    int64
	restored bool // the term found the ledger older than the streams, or replaced
	messages int  // numbers the messages of the term
	// lostChanges are the workloads of which the term found changes that the ledger has lost.
	lostChanges map[workload.ID]bool
	// maxEvent is the size of the largest event that can be sent, in bytes.
	maxEvent  int64
	lastOrder int64               // of submission; commands have another order, see commandOrder
	illegal   []IllegalTransition // since the last drain
	// staleReasons are the workloads whose stored reason differs in amounts only.
	staleReasons map[workload.ID]*entry
	// asking are the waiting workloads for which nodes are, or were, asked for.
	asking asking
	// checked are the workloads that AdmissionChecks are asked about.
	checked checked
	// returning are the preempted workloads that wait, and since when.
	returning map[workload.ID]time.Time
	timers    timers
	// provedAt is when the last certificate for an event was made, or tried.
	provedAt       time.Time
	noCertificates bool
}

// takeOrder returns the place behind all others in the order of submission.
func (l *lifecycle) takeOrder() int64 {
	l.lastOrder++
	return l.lastOrder
}

// enqueue puts a workload into its queue. Its reason shows whether gangs were being
// evicted for it in an earlier term.
func (l *lifecycle) enqueue(e *entry) { l.enqueueAs(e, false) }

// enqueueAs puts a workload into its queue; reasonStored means that the ledger has its reason.
func (l *lifecycle) enqueueAs(e *entry, reasonStored bool) {
	if isRemoved(e) {
		l.removals.removing[e.ID] = true
		return
	}
	from, nominated := e.NotBefore, e.Reason != nil && e.Reason.Kind == workload.ReasonWaitingForEviction
	if hold := l.quotaHold(e); hold != nil && hold.Until.After(from) {
		from, nominated = hold.Until, false
	}
	l.admission.Enqueue(admission.Waiting{
		Workload: &e.Workload, Order: e.order, NotBefore: from, Reported: reasonStored && l.holdReported(e), Held: e.Hold.Message(),
		Since: e.Times.Submitted, RunTime: l.runTime(e), Asked: askedOf(e), Ready: e.checks().Ready(), Tried: triedBy(e), TriedClusters: triedIn(e), Failures: failuresOf(e),
		Never:     e.Reason != nil && e.Reason.Kind == workload.ReasonNeverFits,
		Nominated: nominated,
	})
}

// holdReported reports whether the reason of a waiting workload is right about the question
// whether it, or its queue, is held.
func (l *lifecycle) holdReported(e *entry) bool {
	held := e.Hold.Message() != "" || l.admission.HeldReason(&e.Workload) != nil
	return held == (e.Reason != nil && e.Reason.Kind == workload.ReasonHeld)
}

// end moves a workload into a final phase; it keeps what it holds until its release.
func (l *lifecycle) end(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	if e.attemptState != nil {
		e.askAt = now.Add(releaseInquiryInterval)
	}
	l.admission.Leave(e.ID)
	l.closeChecks(e, "the workload has ended", now)
	l.transition(e, phase, reason, now)
}

// finish ends a workload that holds nothing.
func (l *lifecycle) finish(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	l.end(e, phase, reason, now)
	l.forget(e)
}

func (l *lifecycle) forget(e *entry) {
	if l.removals.removing[e.ID] {
		delete(l.removals.removing, e.ID)
		l.removals.trackUnknown(l.removal(e))
	}
	l.live.Delete(e.ID)
	delete(l.lastAsked, e.ID)
	if e.attemptState != nil {
		l.started--
	}
	l.liveIn[e.Queue]--
	l.objects.remove(e)
	delete(l.staleReasons, e.ID)
	delete(l.asking, e.ID)
	delete(l.checked, e.ID)
	delete(l.returning, e.ID)
}

// release frees what a workload holds after its pods have been observed gone, and takes
// the step that follows its teardown.
func (l *lifecycle) release(e *entry, now time.Time) {
	l.free(e)
	switch {
	case e.Phase == workload.Evicting:
		l.requeue(e, now)
	case e.Phase == workload.Cancelling:
		l.emitCommand(e, event.Forgotten, now)
		l.finish(e, workload.Cancelled, e.Reason, now)
	default:
		l.emitCommand(e, event.Forgotten, now)
		l.emitChanged(e, now)
		l.forget(e)
	}
}

// free frees the reservations of a workload, if it has any.
func (l *lifecycle) free(e *entry) {
	if !e.Holding {
		return
	}
	l.admission.Leave(e.ID)
	l.updateReserved(e, -1)
	l.admission.Release(e.ID)
	cluster := e.Cluster
	l.changed.freedUsage[e.ID] = freedUsage{e.Saved().Last(e.Attempt)}
	e.Placements, e.Flavors, e.Holding = nil, nil, false
	*e.attemptState = attemptState{deadline: e.deadline, removalSent: e.removalSent}
	l.changed.freed[e.ID] = true
	delete(l.changed.reserved, e.ID)
	delete(l.changed.replaced, e.ID)
	l.changed.workloads[e.ID] = e
	key := gangKey{cluster, e.ID}
	if g := l.gangs[key]; g != nil {
		g.pods, g.others = g.seen, nil // none has a place any more
	}
	l.countUnreserved(key)
}

// requeue puts an evicted workload back in its place in the queue, at once or after a
// back-off, or ends it when it has no more retries.
func (l *lifecycle) requeue(e *entry, now time.Time) {
	rules, cause := l.rules(e), e.Reason
	rule := requeueRules[cause.Kind]
	if int(e.Requeues) > *rules.Requeues || rule.final {
		message := fmt.Sprintf("failed after %d requeues: %s", *rules.Requeues, cause.Message)
		if rule.final {
			message = cause.Message
		}
		l.emitCommand(e, event.Forgotten, now)
		l.finish(e, workload.Failed, &workload.Reason{Kind: cause.Kind, Message: message}, now)
		return
	}
	e.Attempt, e.Cluster = e.Attempt+1, ""
	l.endAttempt(e)
	l.endRequest(e) // the command to remove the objects has removed it
	dropUpdates(e, e.checks().Updates)
	l.closeChecks(e, fmt.Sprintf("attempt %d has ended", e.Attempt-1), now)
	e.resetSizes()
	reason := cause
	if rule.backoff != nil {
		e.NotBefore = now.Add(rule.backoff(e, rules))
		reason = &workload.Reason{Kind: workload.ReasonBackoff, Message: fmt.Sprintf("back-off: attempt %d is not tried before %s. Attempt %d was evicted: %s",
			e.Attempt, e.NotBefore.UTC().Format(time.RFC3339), e.Attempt-1, cause.Message)}
	}
	l.transition(e, workload.Queued, reason, now)
	l.beginReturn(e, cause.Kind, now)
	l.enqueue(e)
}
