package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// learnStart notes how long an attempt took until all its pods were ready, unless its cluster
// was silent meanwhile. Others are taken to start alike, so it is at most the ready deadline of
// the queue, whatever the workload asks for.
func (l *lifecycle) learnStart(e *entry, now time.Time) {
	if e.attemptState == nil || e.heardAgain.After(e.Times.Admitted) {
		return
	}
	most := l.queues[e.Queue].Rules.For(workload.Life{}).ReadyDeadline
	l.admission.LearnStart(e.ID, min(now.Sub(e.Times.Admitted), time.Duration(most)))
}

// beginReturn notes since when a workload waits after the eviction for a reason. Only who was
// preempted waits for places alone.
func (l *lifecycle) beginReturn(e *entry, cause workload.ReasonKind, now time.Time) {
	if cause == workload.ReasonPreempted && e.Hold == nil {
		l.returning[e.ID] = now
	}
}

// learnReturn notes how long a workload that is admitted again has waited.
func (l *lifecycle) learnReturn(e *entry, now time.Time) {
	if since, waits := l.returning[e.ID]; waits {
		l.admission.LearnReturn(e.ID, now.Sub(since))
		delete(l.returning, e.ID)
	}
}
