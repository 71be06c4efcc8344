package book

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/objectpolicy"
	"muster.dev/muster/pkg/podpolicy"
	"muster.dev/muster/pkg/workload"
)

// Known is what Postgres has of a workload that the book may have forgotten.
type Known struct {
	Digest string
	Phase  workload.Phase
	// Submitter is who submitted it.
	Submitter string `json:",omitempty"`
	// Record is the workload when it has ended and the book has forgotten it.
	Record *workload.Record `json:",omitempty"`
	// Former is the id under which it is known, when that is the one of an earlier
	// version (event.WorkloadSubmitted.Former).
	Former workload.ID `json:",omitempty"`
}

// Submit takes a submission in. stored is what Postgres has under its id, nil
// for nothing. The same submission again changes nothing.
func (b *Book) Submit(e *event.WorkloadSubmitted, stored *Known, now time.Time) {
	w := e.Workload
	if live := b.live.Get(w.ID); live != nil {
		stored = &Known{Digest: live.Digest, Phase: live.Phase, Submitter: live.Submitter}
	}
	if former := b.former(e, stored); former != nil {
		b.say(now, bus.EventsSubject(w.Queue, w.ID), 0, &event.WorkloadRejected{
			Workload: w.ID, Queue: w.Queue, MessageID: e.MessageID, Reason: workload.Reason{
				Kind: workload.ReasonDuplicate,
				Message: fmt.Sprintf("the same source and id were submitted before an upgrade, as workload %s (%s); use a new id to submit it once more",
					e.Former, former.Phase),
			},
		})
		return
	}
	if _, again := b.changed.added[w.ID]; again && b.live.Get(w.ID) == nil {
		return // added and ended in this very batch
	}
	if stored != nil && stored.Digest == w.Digest {
		if live := b.live.Get(w.ID); live != nil && !b.kept(live) { // tell the submitter, who may have missed it
			b.say(now, bus.EventsSubject(live.Queue, live.ID), 0, &event.WorkloadChanged{Record: live.Record})
		} else if stored.Record != nil {
			b.say(now, bus.EventsSubject(stored.Record.Queue, w.ID), 0, &event.WorkloadChanged{Record: *stored.Record})
		}
		return
	}
	if reason := b.refuse(&w, e.PriorityClass, stored); reason != nil {
		b.say(now, bus.EventsSubject(w.Queue, w.ID), 0, &event.WorkloadRejected{
			Workload: w.ID, Queue: w.Queue, MessageID: e.MessageID, Reason: *reason,
		})
		return
	}
	if reason := b.exceeds(&w, e.PriorityClass, e.Manifest); reason != nil {
		b.say(now, bus.EventsSubject(w.Queue, w.ID), 0, &event.WorkloadRejected{
			Workload: w.ID, Queue: w.Queue, MessageID: e.MessageID, Reason: *reason,
		})
		return
	}
	rules := b.queues[w.Queue].Rules
	err := objectpolicy.Check(rules.Objects, e.Manifest)
	if err == nil {
		err = podpolicy.Check(rules.PodsOf(w.Submitter), e.Manifest)
	}
	if err != nil {
		b.say(now, bus.EventsSubject(w.Queue, w.ID), 0, &event.WorkloadRejected{
			Workload: w.ID, Queue: w.Queue, MessageID: e.MessageID, Reason: workload.Reason{Kind: workload.ReasonInvalid, Message: plain(err.Error())},
		})
		return
	}
	if size := commandSize(w, len(e.Manifest)); size > b.maxEvent {
		b.say(now, bus.EventsSubject(w.Queue, w.ID), 0, &event.WorkloadRejected{Workload: w.ID, Queue: w.Queue, MessageID: e.MessageID, Reason: workload.Reason{
			Kind: workload.ReasonInvalid,
			Message: fmt.Sprintf("the command to start %d pods may take %d bytes, but NATS takes %d: raise its max_payload or submit a smaller gang",
				w.Pods(), size, b.maxEvent),
		}})
		return
	}
	b.lastOrder++
	added := &entry{order: b.lastOrder, Record: workload.Record{
		Workload: w, Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: now},
	}}
	if a := b.aside[w.ID]; a != nil && a.Level == AsideHeld {
		b.holdBack(added, a)
	}
	b.live.Put(added)
	b.liveIn[w.Queue]++
	b.objects.add(added)
	b.changed.added[w.ID] = e.Manifest
	b.tell(added, now, e.Warnings...)
	b.enqueue(added)
}

// former returns what is known of the same submission under the id that an earlier
// version gave it; nil for nothing. Another submitter's is not the same.
func (b *Book) former(e *event.WorkloadSubmitted, stored *Known) *Known {
	if e.Former == "" || stored != nil && stored.Former == "" { // it is known under its own id
		return nil
	}
	if live := b.live.Get(e.Former); live != nil {
		stored = &Known{Phase: live.Phase, Submitter: live.Submitter, Former: e.Former}
	}
	if stored == nil || stored.Former != e.Former || stored.Submitter != e.Workload.Submitter {
		return nil
	}
	return stored
}

// Bytes of a command beside the manifest, of which the pod sets repeat a part:
// for its frame, for each pod set, and
// for the place of each pod, when all are on different nodes.
const (
	frameBytes  = 4 << 10
	podSetBytes = 2 << 10
	placeBytes  = 480
)

// commandSize is the size of the command to start the workload, at most.
func commandSize(w workload.Workload, manifest int) int64 {
	return int64(frameBytes + 2*manifest + podSetBytes*len(w.PodSets) + placeBytes*w.Pods())
}

// refuse fills in the default namespace and the priority of the class, and returns
// why the submission cannot be accepted, nil when it can.
func (b *Book) refuse(w *workload.Workload, class string, stored *Known) *workload.Reason {
	queue, known := b.queues[w.Queue]
	if !known {
		return &workload.Reason{
			Kind:    workload.ReasonQueue,
			Message: fmt.Sprintf("queue %q does not exist, or may not be used; ask its operators for the name", w.Queue),
		}
	}
	if w.Namespace == "" {
		w.Namespace = queue.Namespaces[0]
	}
	if reason := forbidden(queue, w); reason != nil {
		return reason
	}
	if !slices.Contains(queue.Namespaces, w.Namespace) {
		return &workload.Reason{
			Kind: workload.ReasonQueue,
			Message: fmt.Sprintf("namespace %q is not one of queue %q, which may use: %s",
				w.Namespace, w.Queue, strings.Join(queue.usableBy(w.Submitter), ", ")),
		}
	}
	if stored != nil {
		return &workload.Reason{
			Kind: workload.ReasonDuplicate,
			Message: fmt.Sprintf("the same source and id were submitted before with other content, as workload %s (%s); use a new id",
				w.ID, stored.Phase),
		}
	}
	if other := b.objects.of(w.Namespace, w.Kind, w.Name); other != nil && other.Queue != w.Queue {
		return &workload.Reason{
			Kind:    workload.ReasonDuplicate,
			Message: fmt.Sprintf("%s %s/%s is the name of a workload of another queue; use another name", w.Kind, w.Namespace, w.Name),
		}
	} else if other != nil {
		return &workload.Reason{
			Kind: workload.ReasonDuplicate,
			Message: fmt.Sprintf("%s %s/%s is the name of workload %s, which is %s; cancel that one or use another name",
				w.Kind, w.Namespace, w.Name, other.ID, other.Phase),
		}
	}
	if err := workload.CheckComplexity(w.PodSets); err != nil {
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: err.Error()}
	}
	if class != "" {
		var err error
		if w.Priority, err = b.policy.Priority(class); err != nil {
			return &workload.Reason{Kind: workload.ReasonInvalid, Message: err.Error()}
		}
	}
	return b.full(w.Queue)
}

// forbidden says why the queue does not take the workload from who submitted it.
func forbidden(queue Queue, w *workload.Workload) *workload.Reason {
	if queue.Rules.MaySubmit(w.Submitter, w.Namespace) {
		if _, bound := queue.Rules.IdentityOf(w.Submitter); bound {
			return nil
		}
		return &workload.Reason{
			Kind: workload.ReasonForbidden,
			Message: fmt.Sprintf("%q is bound to no user of Kubernetes; the identities of queue %q are set in queue-manager's queues file",
				w.Submitter, w.Queue),
		}
	}
	return &workload.Reason{
		Kind: workload.ReasonForbidden,
		Message: fmt.Sprintf("%q may not submit to queue %q in namespace %q; the queue's submitters are set in queue-manager's queues file",
			w.Submitter, w.Queue, w.Namespace),
	}
}

// usableBy lists the queue's namespaces that somebody may use.
func (q Queue) usableBy(submitter string) []string {
	var usable []string
	for _, namespace := range q.Namespaces {
		if q.Rules.MaySubmit(submitter, namespace) {
			usable = append(usable, namespace)
		}
	}
	return usable
}

// CheckRights ends those who wait whose submitters may not submit any more: a
// queue's submitters may have changed since. What has started goes on.
func (b *Book) CheckRights(now time.Time) {
	listed := func(q Queue) bool { return len(q.Rules.Submitters)+len(q.Rules.Identities) > 0 }
	if !slices.ContainsFunc(slices.Collect(maps.Values(b.queues)), listed) {
		return // there may be a million of them
	}
	for _, e := range b.inOrder() {
		if e.Phase != workload.Queued || b.kept(e) {
			continue
		}
		if reason := forbidden(b.queues[e.Queue], &e.Workload); reason != nil {
			b.admission.Dequeue(e.ID)
			b.finish(e, workload.Failed, reason, now)
		}
	}
}

// Cancel ends a workload. It reports whether the workload is in the book; one
// that is not may be finished, or not have arrived yet.
func (b *Book) Cancel(c *event.WorkloadCancel, now time.Time) bool {
	e := b.live.Get(c.Workload)
	if e == nil || b.kept(e) {
		return false
	}
	if c.Submitter != "" && !b.queues[e.Queue].Rules.MaySubmit(c.Submitter, e.Namespace) {
		return true // whoever asks has been told by intake; this is the second look
	}
	if e.CancelRequested {
		return true
	}
	e.CancelRequested = true
	message := "cancelled on request"
	if c.Why != "" {
		message += ": " + plain(c.Why)
	}
	reason := &workload.Reason{Kind: workload.ReasonCancelled, Message: message}
	switch {
	case e.Phase == workload.Queued:
		b.admission.Dequeue(e.ID)
		b.finish(e, workload.Cancelled, reason, now)
	case e.Phase.Final(): // it holds capacity: its objects have not been removed
		b.desire(e, event.Absent, now)
		b.changed.workloads[e.ID] = e
	default:
		b.tearDown(e, workload.Cancelling, reason, now)
	}
	return true
}
