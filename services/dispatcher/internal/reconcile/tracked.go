package reconcile

import (
	"sync"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// tracked is what the dispatcher knows of one workload. Only reported survives a
// restart, on the bus; the rest is found again. It may be used concurrently.
type tracked struct {
	id workload.ID

	mu          sync.Mutex          // guards all below
	command     *event.GangCommand  // the last one, which is never written to; nil before
	forgotten   time.Time           // since when command is Forgotten
	unconfirmed *event.GangCommand  // the command, when queue-manager had no record of it in the last sweep
	traceparent string              // of the command; empty where nothing is traced
	reported    *event.GangStatus   // the last status that was published; nil before
	repeat      bool                // to be published although it is no news
	question    *event.ReportWanted // that waits for an answer

	progress // of the attempt
}

// wanted returns the last command; nil before the first. It works on nil, too.
func (t *tracked) wanted() *event.GangCommand {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.command
}

// last returns the status that was published last, and whether there was one.
func (t *tracked) last() (status event.GangStatus, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported == nil {
		return event.GangStatus{}, false
	}
	return *t.reported, true
}

// lastOf is what was published of the command's attempt, or the first status of it.
func (t *tracked) lastOf(command *event.GangCommand) event.GangStatus {
	status, _ := t.last()
	if status.Attempt != command.Attempt || status.Cluster != command.Cluster {
		status = event.GangStatus{Workload: command.Workload, Cluster: command.Cluster, Attempt: command.Attempt}
	}
	status.Epoch = command.Epoch
	return status
}

// noteReported keeps a published status, except of a workload without a command.
func (t *tracked) noteReported(status event.GangStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.command != nil {
		t.reported, t.repeat = &status, false
	}
}

// markForRepublish has the status published again, if there is one, and reports whether.
func (t *tracked) markForRepublish() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.repeat = t.repeat || t.reported != nil && t.command != nil
	return t.repeat
}

func (t *tracked) mustRepublish() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.repeat
}

func (t *tracked) trace() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.traceparent
}

// noteConfirmed notes whether queue-manager has a record of the command, if that is still
// the last one. Without a record twice in a row the workload is to be removed, or its request.
func (t *tracked) noteConfirmed(command *event.GangCommand, known bool, now time.Time) (remove bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := t.unconfirmed == command
	t.unconfirmed = nil
	switch {
	case known || t.command != command:
		return false
	case !again:
		t.unconfirmed = command
		return false
	}
	ended := *command
	ended.State = event.Absent
	if command.State == event.Provision {
		ended.State, t.forgotten = event.Forgotten, now
	}
	t.command = &ended
	return true
}

// isUnconfirmed returns the command, and whether queue-manager had no record of it in the
// last sweep.
func (t *tracked) isUnconfirmed() (command *event.GangCommand, is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.command, t.unconfirmed != nil
}

// ask notes a question, and reports whether it is the first that waits.
func (t *tracked) ask(q *event.ReportWanted) (noted, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.command == nil || t.command.State == event.Forgotten || t.command.Cluster != q.Cluster {
		return false, false
	}
	first = t.question == nil
	t.question = q
	return true, first
}

// asked returns the question that waits for an answer; nil when there is none.
func (t *tracked) asked() *event.ReportWanted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.question
}

// answered drops the question, if it is still that one.
func (t *tracked) answered(q *event.ReportWanted) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.question == nil || t.question.Ask != q.Ask {
		return false
	}
	t.question = nil
	return true
}

// reset drops all but the command, and returns the last status and whether a question
// waited.
func (t *tracked) reset() (last *event.GangStatus, asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, asked = t.reported, t.question != nil
	t.reported, t.repeat, t.question, t.traceparent = nil, false, nil, ""
	t.progress = progress{}
	return last, asked
}

// keepReported puts back the status that reset has dropped.
func (t *tracked) keepReported(last *event.GangStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reported = last
}

// dropForgotten drops the command of a workload that was forgotten long ago, and
// reports whether nothing is left of it.
func (t *tracked) dropForgotten(now time.Time) (nothing bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.forgotten.IsZero() && now.Sub(t.forgotten) > forgottenKept {
		t.command, t.forgotten, t.traceparent = nil, time.Time{}, ""
	}
	return t.command == nil && t.reported == nil && t.traceparent == ""
}
