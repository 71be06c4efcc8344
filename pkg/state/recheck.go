package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// withdrawChecks is closeChecks for a workload that waits, which the caller queues again or
// ends.
func (l *lifecycle) withdrawChecks(e *entry, why string, now time.Time) {
	if e.checks() == nil || !e.checks().Asked {
		return
	}
	l.admission.Dequeue(e.ID) // its pods may be changed
	dropUpdates(e, e.checks().Updates)
	l.closeChecks(e, why, now)
}

// checkedInOrder lists the workloads with a standing request, by submission.
func (l *lifecycle) checkedInOrder() []*entry {
	return inOrder(l.checked, func(*entry) bool { return true })
}

// recheckQueues has workloads try again that wait for checks which their queue does not have
// any more.
func (l *lifecycle) recheckQueues(now time.Time) {
	for _, e := range inOrder(l.checked, l.waitsForOthers) {
		l.withdrawChecks(e, "its queue does not have the same checks any more", now)
		l.emitChanged(e, now)
		l.enqueue(e)
	}
}

// withdrawHeld ends what a workload waits for outside the line, whatever it is, and queues it
// again.
func (l *lifecycle) withdrawHeld(e *entry, why workload.Reason, now time.Time) {
	l.withdrawRequest(e, now)
	l.withdrawChecks(e, "its quota is not reserved any more", now)
	e.Reason = &why
	l.emitChanged(e, now)
	l.enqueue(e)
}

// waitsForOthers reports whether a workload waits for a check that its queue does not have.
func (l *lifecycle) waitsForOthers(e *entry) bool {
	if e.Phase != workload.Queued || !e.checks().Pending() || l.frozen(e) {
		return false
	}
	wanted := l.admission.QueueOf(&e.Workload).Messaged(e.checks().Flavors)
	return slices.ContainsFunc(e.checks().Checks, func(c workload.Check) bool {
		return c.Status != workload.CheckReady && !slices.Contains(wanted, c.Name)
	})
}
