package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// CheckRights ends those who wait whose submitters may not submit any more: a
// queue's submitters may have changed since. What has started goes on.
func (s *State) CheckRights(now time.Time) {
	listed := func(q Queue) bool { return len(q.Rules.Submitters)+len(q.Rules.Identities) > 0 }
	if !slices.ContainsFunc(slices.Collect(maps.Values(s.queues)), listed) {
		return // there may be a million of them
	}
	for _, e := range s.inOrder() {
		if e.Phase != workload.Queued || s.frozen(e) {
			continue
		}
		if reason := forbidden(s.queues[e.Queue], &e.Workload); reason != nil {
			s.withdrawRequest(e, now)
			s.admission.Dequeue(e.ID)
			s.finish(e, workload.Failed, reason, now)
		}
	}
}

// forbidden returns why the queue does not take the workload from who submitted it.
func forbidden(queue Queue, w *workload.Workload) *workload.Reason {
	if queue.Rules.MaySubmit(w.Submitter, w.Namespace) {
		if _, bound := queue.Rules.IdentityOf(w); bound {
			return nil
		}
		return &workload.Reason{
			Kind: workload.ReasonForbidden,
			Message: fmt.Sprintf("submitter %q has no Kubernetes identity in queue %q; identities are set in queue-manager's queues file",
				w.Submitter, w.Queue),
		}
	}
	return &workload.Reason{
		Kind: workload.ReasonForbidden,
		Message: fmt.Sprintf("submitter %q may not submit to queue %q in namespace %q; submitters are set in queue-manager's queues file",
			w.Submitter, w.Queue, w.Namespace),
	}
}

// usableBy lists the queue's namespaces that a submitter may use.
func (q Queue) usableBy(submitter string) []string {
	var usable []string
	for _, namespace := range q.Namespaces {
		if q.Rules.MaySubmit(submitter, namespace) {
			usable = append(usable, namespace)
		}
	}
	return usable
}
