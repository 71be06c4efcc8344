package book

import (
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// rules are those of the workload's queue, with what it asks for itself.
func (b *Book) rules(e *entry) workload.Rules { return b.queues[e.Queue].Rules.For(e.Life) }

// tearDown has the objects removed at once; what follows comes with their
// release.
func (b *Book) tearDown(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	b.tearDownAt(e, phase, reason, now, now)
}

// announce tears a workload down that could run on: its object is told when it
// will be deleted, and it has the time until then to save its work.
func (b *Book) announce(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	grace := time.Duration(b.rules(e).CheckpointGrace)
	if e.Phase != workload.Running {
		grace = 0 // it has nothing to save
	}
	b.tearDownAt(e, phase, reason, now.Add(grace), now)
}

func (b *Book) tearDownAt(e *entry, phase workload.Phase, reason *workload.Reason, at, now time.Time) {
	e.Phase, e.Reason, e.EvictAt = phase, reason, at
	e.broken, e.moveAt, e.grows, e.yield, e.idleSince = trouble{}, time.Time{}, nil, nil, time.Time{}
	b.admission.Leave(e.ID)
	b.tell(e, now)
	if at.After(now) {
		b.desire(e, event.Present, now)
	} else {
		b.desire(e, event.Absent, now)
	}
	b.schedule(e)
}

// evict sends a workload that has started back to its place in the queue, for no
// fault of its own: a preemption, a drain, a lost node.
func (b *Book) evict(e *entry, reason *workload.Reason, now time.Time) {
	b.announce(e, workload.Evicting, reason, now)
}

// evictForFault sends a workload back that did not become ready or lost pods.
// The count of such evictions begins anew when it has run for longer than the
// longest back-off, unless the workload itself has said how often it may be.
func (b *Book) evictForFault(e *entry, reason *workload.Reason, now time.Time) {
	counted := e.Life.Tolerance != nil && e.Life.Tolerance.Retries != nil
	if !counted && over(now, e.Times.Running, time.Duration(b.rules(e).BackoffMost)) {
		e.Requeues = 0
	}
	e.Requeues++
	b.tearDown(e, workload.Evicting, reason, now)
}

// checkExits ends a workload of which a container has ended with a code after
// which it asks not to be tried again; also while it is being torn down for that.
func (b *Book) checkExits(e *entry, now time.Time) {
	t := e.Life.Tolerance
	if t == nil || e.Phase.Final() || e.Phase == workload.Cancelling || e.Reason != nil && e.Reason.Kind == workload.ReasonExitCode {
		return
	}
	for _, pod := range b.gangs[gangKey{e.Cluster, e.ID}].pods {
		if pod.Attempt != e.Attempt || pod.ExitCode == 0 || t.RetriesAfter(pod.ExitCode) {
			continue
		}
		reason := &workload.Reason{
			Kind:    workload.ReasonExitCode,
			Message: fmt.Sprintf("a container of pod %s ended with exit code %d, after which the workload asks not to be tried again", pod.Name, pod.ExitCode),
		}
		if e.Phase == workload.Evicting {
			e.Reason = reason
			b.tell(e, now)
		} else {
			b.tearDown(e, workload.Evicting, reason, now)
		}
		return
	}
}

// notReadyInTime deals with a gang whose deadline has passed. When KubeRay has
// made none of its pods, and says nothing either, that is not the gang's fault.
func (b *Book) notReadyInTime(e *entry, rules workload.Rules, now time.Time) {
	ready, all := b.readiness(e)
	deadline := time.Duration(rules.ReadyDeadline)
	message := fmt.Sprintf("%d of %d pods were ready %s after the creation of its object", ready, all, deadline)
	g := b.gangs[gangKey{e.Cluster, e.ID}]
	seen := g != nil && len(g.pods) > 0
	if e.Reason != nil && e.Reason.Kind == workload.ReasonStarting && !strings.HasPrefix(e.Reason.Message, slowPrefix) {
		seen, message = true, message+": "+e.Reason.Message
	}
	if !seen {
		b.tearDown(e, workload.Evicting, &workload.Reason{
			Kind:    workload.ReasonNotCreated,
			Message: fmt.Sprintf("none of its pods was there %s after the creation of its object: does the KubeRay operator run?", deadline),
		}, now)
		return
	}
	b.evictForFault(e, &workload.Reason{Kind: workload.ReasonNotReady, Message: message}, now)
}

// release frees what a workload holds: its pods have been seen gone.
func (b *Book) release(e *entry, now time.Time) {
	b.charge(e, -1)
	b.admission.Release(e.ID)
	cluster := e.Cluster
	e.Placements, e.Flavors, e.Holding = nil, nil, false
	*e.course = course{due: e.due, commandedAway: e.commandedAway}
	b.changed.freed[e.ID] = true
	delete(b.changed.reserved, e.ID)
	delete(b.changed.moved, e.ID)
	b.changed.workloads[e.ID] = e
	key := gangKey{cluster, e.ID}
	if g := b.gangs[key]; g != nil {
		g.pods, g.others = g.seen, nil // none has a place any more
	}
	b.countStrays(key)
	switch {
	case e.Phase == workload.Evicting:
		b.requeue(e, now)
	case e.Phase == workload.Cancelling:
		b.desire(e, event.Forgotten, now)
		b.finish(e, workload.Cancelled, e.Reason, now)
	default:
		b.desire(e, event.Forgotten, now)
		b.tell(e, now)
		b.forget(e)
	}
}

// requeue puts an evicted workload back in its place, at once or after a
// back-off, or ends it when that has been done often enough.
func (b *Book) requeue(e *entry, now time.Time) {
	rules, cause := b.rules(e), e.Reason
	if e.Requeues > *rules.Requeues || cause.Kind == workload.ReasonExitCode {
		message := fmt.Sprintf("given up after it was queued again %d times: %s", *rules.Requeues, cause.Message)
		if cause.Kind == workload.ReasonExitCode {
			message = cause.Message
		}
		b.desire(e, event.Forgotten, now)
		b.finish(e, workload.Failed, &workload.Reason{Kind: cause.Kind, Message: message}, now)
		return
	}
	e.Phase, e.Attempt, e.Cluster, e.EvictAt = workload.Queued, e.Attempt+1, "", time.Time{}
	b.wait(e)
	e.Times.Admitted, e.Times.Dispatched, e.Times.Running = time.Time{}, time.Time{}, time.Time{}
	e.asSubmitted()
	switch cause.Kind {
	case workload.ReasonNotReady, workload.ReasonPodLost:
		e.NotBefore = now.Add(rules.Backoff(e.Requeues))
	case workload.ReasonNotCreated:
		e.NotBefore = now.Add(rules.Backoff(e.Attempt - 1))
	default:
		b.tell(e, now)
		b.enqueue(e)
		return
	}
	b.enqueue(e)
	e.Reason = &workload.Reason{Kind: workload.ReasonBackoff, Message: fmt.Sprintf("attempt %d is not tried before %s; of the last one %s",
		e.Attempt, e.NotBefore.UTC().Format(time.RFC3339), cause.Message)}
	b.tell(e, now)
}
