package state

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// MoveToQueue has a workload that waits wait in another queue, where it keeps its place by
// submission. Its history and a last event on the subject of the former queue say so. A
// move that the other queue does not allow changes nothing, and an event has the reason. It
// reports whether the workload is live.
func (s *State) MoveToQueue(m *event.WorkloadMove, now time.Time) bool {
	e, live := s.asked(m.Workload, m.Submitter)
	if e == nil || e.Queue == m.Queue {
		return live
	}
	if why := s.refuseMove(e, m); why != "" {
		s.emitRefusal(e, workload.ReasonQueue, event.NotMoved+sanitize(why), now)
		return true
	}
	from := e.Queue
	s.withdrawRequest(e, now) // the other queue may have no such check
	s.withdrawChecks(e, "the workload is moved to another queue", now)
	s.admission.Dequeue(e.ID)
	s.liveIn[from]--
	s.liveIn[m.Queue]++
	delete(s.staleReasons, e.ID)
	e.Queue = m.Queue
	message := withWhy(fmt.Sprintf("%s moved it from queue %q to queue %q", sanitize(m.By), from, m.Queue), m.Why)
	e.Reason = &workload.Reason{Kind: workload.ReasonPending, Message: message}
	s.emitChanged(e, now)
	s.emit(now, event.EventsSubject(from, e.ID), 0, &event.WorkloadChanged{Record: e.Record}) // for those who follow it there
	s.enqueue(e)
	return true
}

// refuseMove returns why a workload cannot wait in another queue; empty when it can.
func (s *State) refuseMove(e *entry, m *event.WorkloadMove) string {
	to, known := s.queues[m.Queue]
	switch {
	case e.Phase != workload.Queued || e.CancelRequested || isRemoved(e):
		return fmt.Sprintf("it is %s, and only a waiting workload can be moved", e.Phase)
	case !known || m.Submitter != "" && !to.Rules.MaySubmit(m.Submitter, e.Namespace):
		return noQueueFor(&e.Workload, m.Queue)
	}
	if why := RefuseMove(&e.Workload, s.queues[e.Queue], to, s.policy.Priorities); why != "" {
		return why
	}
	if most := to.Rules.Limits.Workloads; most > 0 && s.liveIn[m.Queue] >= most || s.limits.InQueue > 0 && s.liveIn[m.Queue] >= s.limits.InQueue {
		return fmt.Sprintf("queue %q is full: it has %d live workloads", m.Queue, s.liveIn[m.Queue])
	}
	return ""
}

// RefuseMove returns why a workload cannot wait in another queue by the rules of both; empty
// when it can. Whether there is room for it is not looked at.
func RefuseMove(w *workload.Workload, from, to Queue, classes []quota.PriorityClass) string {
	switch {
	case !to.Rules.MaySubmit(w.Submitter, w.Namespace):
		return noQueueFor(w, to.Name)
	case !slices.Contains(to.Namespaces, w.Namespace):
		return fmt.Sprintf("namespace %q does not belong to queue %q", w.Namespace, to.Name)
	case w.Life.Moves && to.Rules.HomeObjects != workload.MoveFromHome:
		return staysAtHome(to.Name)
	case !reflect.DeepEqual(from.Rules.Objects, to.Rules.Objects) || !reflect.DeepEqual(from.Rules.PodsOf(w), to.Rules.PodsOf(w)) ||
		from.Rules.Grace() != to.Rules.Grace():
		return fmt.Sprintf("queue %q has other rules for objects, pods or grace periods, which its manifest was not checked against; cancel it and submit it there", to.Name)
	}
	asks := *w
	asks.Queue = to.Name
	return exceeds(to.Rules, &asks, classes)
}

func noQueueFor(w *workload.Workload, queue string) string {
	return fmt.Sprintf("queue %q does not exist or does not admit its submitter in namespace %q", queue, w.Namespace)
}

// exceeds returns what a workload asks for that the rules do not allow, under any of the
// classes that give its priority; its own is not stored.
func exceeds(rules workload.Rules, asks *workload.Workload, classes []quota.PriorityClass) string {
	err := rules.Exceeded(asks, "")
	for _, class := range classes {
		if err != nil && class.Value == asks.Priority && rules.Exceeded(asks, class.Name) == nil {
			return ""
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
