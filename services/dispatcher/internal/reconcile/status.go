package reconcile

import (
	"context"
	"fmt"
	"reflect"

	"muster.dev/muster/pkg/message/event"
)

// reports publishes the statuses of workloads.
type reports struct {
	publish   Reporter
	workloads *workloads
	order     *creationsFirst
}

// report publishes a status if it is news.
func (r *reports) report(ctx context.Context, t *tracked, status event.GangStatus) error {
	old, known := t.last()
	old.Epoch, old.Session, old.Answers = status.Epoch, status.Session, "" // epochs alone are no news
	status.Answers = ""
	if known && reflect.DeepEqual(old, status) && !t.mustRepublish() {
		return nil
	}
	if err := r.publish(ctx, status, 0); err != nil {
		return fmt.Errorf("report status of workload %s: %w", t.id, err)
	}
	t.noteReported(status)
	if status.Created || status.Refused || status.Gone {
		r.order.setNew(t.id, false)
	}
	return nil
}

// repeat publishes the last status again, if that was asked for.
func (r *reports) repeat(ctx context.Context, t *tracked) error {
	if !t.mustRepublish() {
		return nil
	}
	status, _ := t.last()
	return r.report(ctx, t, status)
}

// forget lets the last status of a workload expire and drops what is remembered of it,
// but for the command.
func (r *reports) forget(ctx context.Context, t *tracked) error {
	status := r.workloads.forget(t)
	if status == nil {
		return nil
	}
	if err := r.publish(ctx, *status, forgottenKept); err != nil {
		t.keepReported(status) // for the next try
		return fmt.Errorf("report last status of workload %s: %w", t.id, err)
	}
	return nil
}

// answer publishes the status after the pass that has just ended, if
// queue-manager asked for it.
func (r *reports) answer(ctx context.Context, t *tracked) error {
	command, asked := t.wanted(), t.asked()
	if asked == nil || command == nil || command.State == event.Forgotten {
		return nil
	}
	status, _ := t.last()
	if status.Attempt != command.Attempt || status.Cluster != command.Cluster {
		status = t.lastOf(command)
	}
	status.Answers = asked.Ask
	if err := r.publish(ctx, status, 0); err != nil {
		return fmt.Errorf("answer question %s about workload %s: %w", asked.Ask, t.id, err)
	}
	r.workloads.answered(t, asked)
	return nil
}
