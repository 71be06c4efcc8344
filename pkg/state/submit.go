package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/manifest/objectpolicy"
	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Known is what Postgres has of a workload that the state may have forgotten.
type Known struct {
	Digest string
	Phase  workload.Phase
	// Submitter is who submitted it.
	Submitter string `json:",omitempty"`
	// Record is the workload when it has ended and the state has forgotten it.
	Record *workload.Record `json:",omitempty"`
	// Former is the id under which it is known, when that is the one of an earlier
	// version (event.WorkloadSubmitted.Former).
	Former workload.ID `json:",omitempty"`
}

// Submit applies a submission. stored is what Postgres has under its id, nil
// for nothing. The same submission again changes nothing.
func (s *State) Submit(e *event.WorkloadSubmitted, stored *Known, now time.Time) {
	w := e.Workload
	if live := s.live.Get(w.ID); live != nil {
		stored = &Known{Digest: live.Digest, Phase: live.Phase, Submitter: live.Submitter}
	}
	if former := s.former(e, stored); former != nil {
		s.reject(e, workload.Reason{
			Kind: workload.ReasonDuplicate,
			Message: fmt.Sprintf("source and id were submitted before an upgrade, as workload %s (%s); use a new id to submit it once more",
				e.Former, former.Phase),
		}, now)
		return
	}
	if _, again := s.changed.added[w.ID]; again && s.live.Get(w.ID) == nil {
		return // added and ended in this very batch
	}
	if stored != nil && stored.Digest == w.Digest {
		if live := s.live.Get(w.ID); live != nil && !s.frozen(live) { // the submitter may have missed the event
			for _, queue := range slices.Compact([]string{live.Queue, w.Queue}) { // it may have been moved
				s.emit(now, event.EventsSubject(queue, live.ID), 0, &event.WorkloadChanged{Record: live.Record})
			}
		} else if stored.Record != nil {
			s.emit(now, event.EventsSubject(stored.Record.Queue, w.ID), 0, &event.WorkloadChanged{Record: *stored.Record})
		}
		return
	}
	if reason := s.refusal(&w, e, stored); reason != nil {
		s.reject(e, *reason, now)
		return
	}
	added := &entry{order: s.takeOrder(), Record: workload.Record{
		Workload: w, Phase: workload.Queued, Attempt: s.removals.used[w.ID] + 1, Times: workload.Times{Submitted: now},
	}}
	delete(s.removals.used, w.ID)
	if a := s.quarantined[w.ID]; a != nil && a.Level == QuarantineHeld {
		added.delayRetry(a)
	}
	s.live.Put(added)
	s.liveIn[w.Queue]++
	s.objects.add(added)
	s.changed.added[w.ID] = e.Manifest
	s.emitChanged(added, now, e.Warnings...)
	s.enqueue(added)
	s.recovery.afterUsed(added, now)
}

// reject publishes why a submission is not accepted.
func (s *State) reject(e *event.WorkloadSubmitted, reason workload.Reason, now time.Time) {
	s.emit(now, event.EventsSubject(e.Workload.Queue, e.Workload.ID), 0, &event.WorkloadRejected{
		Workload: e.Workload.ID, Queue: e.Workload.Queue, MessageID: e.MessageID, Reason: reason,
	})
}

// refusal returns why a submission is not accepted; nil when it is. It completes the
// workload as its queue has it.
func (s *State) refusal(w *workload.Workload, e *event.WorkloadSubmitted, stored *Known) *workload.Reason {
	if reason := s.refuse(w, e.PriorityClass, stored); reason != nil {
		return reason
	}
	if reason := s.exceededLimit(w, e.PriorityClass, e.Manifest); reason != nil {
		return reason
	}
	rules := s.queues[w.Queue].Rules
	w.PodSets = rules.PreferringFor(w)
	err := objectpolicy.Check(rules.Objects, e.Manifest)
	if err == nil {
		err = podpolicy.Check(rules.PodsOf(w), e.Manifest)
	}
	if err != nil {
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: sanitize(err.Error())}
	}
	if size := commandSize(*w, len(e.Manifest)); size > s.maxEvent {
		return &workload.Reason{
			Kind: workload.ReasonInvalid,
			Message: fmt.Sprintf("the command to start %d pods may have %d bytes, but NATS accepts %d; raise its max_payload or submit a smaller gang",
				w.Pods(), size, s.maxEvent),
		}
	}
	return nil
}

// former returns what is known of the same submission under the id that an earlier
// version gave it; nil for nothing. Another submitter's is not the same.
func (s *State) former(e *event.WorkloadSubmitted, stored *Known) *Known {
	if e.Former == "" || stored != nil && stored.Former == "" { // it is known under its own id
		return nil
	}
	if live := s.live.Get(e.Former); live != nil {
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
	// carriedBytes are of each object that the queue carries. The workload may start when its
	// queue carries more than now, or is another one, so as many as one may carry count.
	carriedBytes = 400
)

// commandSize is the size of the command to start the workload, at most.
func commandSize(w workload.Workload, manifest int) int64 {
	return int64(frameBytes + carriedBytes*workload.MostCarried + 2*manifest + podSetBytes*len(w.PodSets) + placeBytes*w.Pods())
}

// taken reports that a submission has the id of another workload, in the words of the interface
// that it came by.
func taken(w *workload.Workload, phase workload.Phase) string {
	what, other := "source and id are", "id"
	if strings.HasPrefix(w.Submitter, workload.ByHTTP+"/") {
		what, other = "the Idempotency-Key is", "key"
	}
	return fmt.Sprintf("%s taken by workload %s (%s), which has other content; use a new %s", what, w.ID, phase, other)
}

// severalQueues reports whether a queue leads to different ClusterQueues in the namespaces.
func (s *State) severalQueues(queue string, namespaces []string) bool {
	local := map[string]string{}
	for _, l := range s.policy.LocalQueues {
		if l.Name == queue {
			local[l.Namespace] = l.ClusterQueue
		}
	}
	leads := func(namespace string) string { return cmp.Or(local[namespace], queue) }
	return slices.ContainsFunc(namespaces, func(namespace string) bool { return leads(namespace) != leads(namespaces[0]) })
}

// refuse fills in the default namespace and the priority of the class, and returns
// why the submission cannot be accepted, nil when it can.
func (s *State) refuse(w *workload.Workload, class string, stored *Known) *workload.Reason {
	queue, known := s.queues[w.Queue]
	if !known || len(queue.usableBy(w.Submitter)) == 0 { // who may not use it does not hear whether it is there
		return &workload.Reason{
			Kind:    workload.ReasonQueue,
			Message: fmt.Sprintf("queue %q does not exist or does not admit this submitter; ask the operators for a queue", w.Queue),
		}
	}
	if usable := queue.usableBy(w.Submitter); w.Namespace == "" && s.severalQueues(w.Queue, usable) {
		return &workload.Reason{
			Kind: workload.ReasonQueue,
			Message: fmt.Sprintf("%q is the name of queues in the namespaces %s, each with its own quota; name the namespace in metadata.namespace, or with --namespace",
				w.Queue, strings.Join(usable, ", ")),
		}
	}
	if w.Namespace == "" {
		w.Namespace = queue.Namespaces[0]
	}
	if reason := forbidden(queue, w); reason != nil {
		return reason
	}
	if w.Life.Moves {
		if reason := refuseToMove(queue, w); reason != nil {
			return reason
		}
	}
	if !slices.Contains(queue.Namespaces, w.Namespace) {
		return &workload.Reason{
			Kind: workload.ReasonQueue,
			Message: fmt.Sprintf("namespace %q does not belong to queue %q; use one of: %s",
				w.Namespace, w.Queue, strings.Join(queue.usableBy(w.Submitter), ", ")),
		}
	}
	if stored != nil {
		return &workload.Reason{
			Kind:    workload.ReasonDuplicate,
			Message: taken(w, stored.Phase),
		}
	}
	if other := s.objects.taken(w); other != nil && other.Queue != w.Queue {
		return &workload.Reason{
			Kind:    workload.ReasonDuplicate,
			Message: fmt.Sprintf("name %s %s/%s is taken by a workload of another queue; use another name", w.Kind, w.Namespace, w.Name),
		}
	} else if other != nil {
		return &workload.Reason{
			Kind: workload.ReasonDuplicate,
			Message: fmt.Sprintf("name %s %s/%s is taken by workload %s (%s); cancel that workload or use another name",
				w.Kind, w.Namespace, w.Name, other.ID, other.Phase),
		}
	}
	if err := workload.CheckComplexity(w.PodSets); err != nil {
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: err.Error()}
	}
	if class != "" {
		var err error
		if w.Priority, err = s.policy.Priority(class); err != nil {
			return &workload.Reason{Kind: workload.ReasonInvalid, Message: err.Error()}
		}
	}
	return s.limitReached(w.Queue)
}

// refuseToMove returns why the object of a user may not have its gang run in another cluster; nil
// when it may.
func refuseToMove(queue Queue, w *workload.Workload) *workload.Reason {
	switch {
	case queue.Rules.HomeObjects != workload.MoveFromHome:
		return &workload.Reason{Kind: workload.ReasonQueue, Message: staysAtHome(queue.Name)}
	case w.MadeIn() == "" || w.Kind != workload.KindRayJob && w.Kind != workload.KindRayCluster:
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: fmt.Sprintf("%s %q of submitter %q cannot move; RayJobs and RayClusters can that were made with kubectl", w.Kind, w.Name, w.Submitter)}
	}
	return nil
}

// staysAtHome reports that objects of a queue run in their own cluster.
func staysAtHome(queue string) string {
	return fmt.Sprintf("spec.managedBy has KubeRay leave the object alone, but objects of queue %q run in their own cluster: create it without that field, or ask the operators to set homeObjects: move for the queue", queue)
}
