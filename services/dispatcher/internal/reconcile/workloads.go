package reconcile

import (
	"sync"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

const (
	// forgottenKept is how long a forgotten workload is remembered, and its last
	// status kept: a command that comes late must not bring it back.
	forgottenKept = time.Hour
	// askedMost bounds the questions that wait for an answer; queue-manager repeats
	// those that get none.
	askedMost = 4096
)

// workloads is everything that is tracked. It may be used concurrently; its lock is
// taken before that of a workload.
type workloads struct {
	mu        sync.Mutex
	byID      map[workload.ID]*tracked
	questions int // that wait for an answer
}

// newWorkloads returns the workloads that earlier dispatchers reported, with their
// last status.
func newWorkloads(reported map[workload.ID]event.GangStatus) *workloads {
	w := &workloads{byID: make(map[workload.ID]*tracked, len(reported))}
	for id, status := range reported {
		w.byID[id] = &tracked{id: id, reported: &status}
	}
	return w
}

// get returns a workload; nil when nothing is known of it.
func (w *workloads) get(id workload.ID) *tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byID[id]
}

// all returns the workloads in no order.
func (w *workloads) all() []*tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*tracked, 0, len(w.byID))
	for _, t := range w.byID {
		all = append(all, t)
	}
	return all
}

// track returns a workload and begins to track it if need be; the lock is held.
func (w *workloads) track(id workload.ID) *tracked {
	t := w.byID[id]
	if t == nil {
		t = &tracked{id: id}
		w.byID[id] = t
	}
	return t
}

// accept makes the command the last one of its workload, unless a later one is known,
// which it returns.
func (w *workloads) accept(command *event.GangCommand, now time.Time) (t *tracked, later *event.GangCommand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t = w.track(command.Workload)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !gang.Replaces(command, t.command) {
		return t, t.command
	}
	t.command, t.unconfirmed, t.forgotten = command, nil, time.Time{}
	if command.State == event.Forgotten {
		t.forgotten = now
	}
	return t, nil
}

// setTrace notes the trace context of a command that accept is about to get.
func (w *workloads) setTrace(id workload.ID, traceparent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.track(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.traceparent = traceparent
}

// dropForgotten stops tracking workloads that were forgotten long ago.
func (w *workloads) dropForgotten(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, t := range w.byID {
		if t.dropForgotten(now) {
			delete(w.byID, id)
		}
	}
}

// ask notes a question of queue-manager. Without a live command for the workload in
// that cluster there is no answer, and queue-manager concludes from its absence.
func (w *workloads) ask(q *event.ReportWanted) (noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.byID[q.Workload]
	if t == nil || w.questions >= askedMost {
		return false
	}
	noted, first := t.ask(q)
	if first {
		w.questions++
	}
	return noted
}

// answered drops a question, unless another one has replaced it.
func (w *workloads) answered(t *tracked, q *event.ReportWanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.answered(q) {
		w.questions--
	}
}

// forget drops all but the command of a workload and returns the last status; nil when
// there was none.
func (w *workloads) forget(t *tracked) *event.GangStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	status, asked := t.reset()
	if asked {
		w.questions--
	}
	return status
}
