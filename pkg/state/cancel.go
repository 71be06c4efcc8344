package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// ForceRelease ends a workload and frees what is reserved for it, although its
// objects and pods may still be there. Pods that are seen count as used beyond any
// reservation on their nodes from now on, so that their room is not given away. It
// reports whether the workload is live.
func (s *State) ForceRelease(r *event.WorkloadRelease, now time.Time) bool {
	e := s.live.Get(r.Workload)
	if e == nil || s.frozen(e) {
		return false
	}
	if !e.Holding {
		return true // it waits, and nothing is reserved for it
	}
	running := 0
	if g := s.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Holds() {
				running++
			}
		}
	}
	reason := &workload.Reason{Kind: workload.ReasonReleased, Message: fmt.Sprintf(
		"%s released the places in cluster %s by force: %s. %d pods were observed then; delete what is left of them",
		sanitize(r.By), e.Cluster, sanitize(r.Why), running)}
	s.free(e)
	s.emitCommand(e, event.Forgotten, now)
	switch {
	case e.Phase.Final():
		e.Reason = reason
		s.emitChanged(e, now)
		s.forget(e)
	case e.Phase == workload.Cancelling:
		s.finish(e, workload.Cancelled, reason, now)
	default:
		s.finish(e, workload.Failed, reason, now)
	}
	return true
}

// Cancel ends a workload. It reports whether the workload is in the state; one
// that is not may be finished, or not have arrived yet.
func (s *State) Cancel(c *event.WorkloadCancel, now time.Time) bool {
	e := s.live.Get(c.Workload)
	if e == nil || s.frozen(e) {
		return false
	}
	if c.Submitter != "" && !s.queues[e.Queue].Rules.MaySubmit(c.Submitter, e.Namespace) {
		return true // intake has answered the submitter; this is the second look
	}
	if e.CancelRequested {
		return true
	}
	e.CancelRequested = true
	message := "cancelled on request"
	if c.Why != "" {
		message += ": " + sanitize(c.Why)
	}
	reason := &workload.Reason{Kind: workload.ReasonCancelled, Message: message}
	switch {
	case e.Phase == workload.Queued:
		s.withdrawRequest(e, now)
		s.withdrawChecks(e, "the workload is cancelled", now)
		s.admission.Dequeue(e.ID)
		s.finish(e, workload.Cancelled, reason, now)
	case e.Phase.Final(): // it holds capacity: its objects have not been removed
		s.emitCommand(e, event.Absent, now)
		s.changed.workloads[e.ID] = e
	default:
		s.tearDown(e, workload.Cancelling, reason, now)
	}
	return true
}
