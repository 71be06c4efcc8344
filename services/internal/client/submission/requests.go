package submission

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Cancel asks for the end of a workload.
func Cancel(ctx context.Context, b *bus.Bus, r workload.Record, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadCancel{Workload: r.ID, Why: why}, at); err != nil {
		return fmt.Errorf("cancel workload %s: %w", r.ID, err)
	}
	return nil
}

// Release asks for the places of a workload to be freed by force.
func Release(ctx context.Context, b *bus.Bus, r workload.Record, by, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadRelease{Workload: r.ID, By: by, Why: why}, at); err != nil {
		return fmt.Errorf("release workload %s: %w", r.ID, err)
	}
	return nil
}

// Move asks to have a workload wait in another queue.
func Move(ctx context.Context, b *bus.Bus, r workload.Record, queue, by, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadMove{Workload: r.ID, Queue: queue, By: by, Why: why}, at); err != nil {
		return fmt.Errorf("move workload %s to queue %s: %w", r.ID, queue, err)
	}
	return nil
}

// Hold asks to keep a workload from admission, or to resume it.
func Hold(ctx context.Context, b *bus.Bus, r workload.Record, resume bool, by, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadHold{Workload: r.ID, Resume: resume, By: by, Why: why}, at); err != nil {
		return fmt.Errorf("hold or resume workload %s: %w", r.ID, err)
	}
	return nil
}

// Requeue asks to take a workload down and queue it again.
func Requeue(ctx context.Context, b *bus.Bus, r workload.Record, by, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadRequeue{Workload: r.ID, Attempt: r.Attempt, By: by, Why: why}, at); err != nil {
		return fmt.Errorf("requeue workload %s: %w", r.ID, err)
	}
	return nil
}

// Checkpoint reports that a workload has saved its work.
func Checkpoint(ctx context.Context, b *bus.Bus, r workload.Record, saved time.Time, by string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadCheckpoint{Workload: r.ID, Attempt: r.Attempt, At: saved.UTC(), By: by}, at); err != nil {
		return fmt.Errorf("report a checkpoint of workload %s: %w", r.ID, err)
	}
	return nil
}

// SetPriority asks for another priority of a workload.
func SetPriority(ctx context.Context, b *bus.Bus, r workload.Record, priority int32, by, why string, at time.Time) error {
	if err := ask(ctx, b, r, &event.WorkloadPriority{Workload: r.ID, Priority: priority, By: by, Why: why}, at); err != nil {
		return fmt.Errorf("set the priority of workload %s to %d: %w", r.ID, priority, err)
	}
	return nil
}

// ask publishes what is asked of a workload.
func ask(ctx context.Context, b *bus.Bus, r workload.Record, asked event.Payload, at time.Time) error {
	envelope, err := event.New(event.NewID(), DefaultSource, at, asked)
	if err != nil {
		return err
	}
	encoded, err := envelope.Encode()
	if err != nil {
		return err
	}
	return send(ctx, b, event.WorkloadSubject(r.Queue), envelope.ID, encoded)
}
