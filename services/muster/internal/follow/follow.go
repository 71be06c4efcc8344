// Package follow follows the life of a workload in the stream of events, and
// judges whether it has come where somebody waits for it to come.
//
// It is not for asking what is true now; that is package query's.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// Step is one thing that happened to a workload.
type Step struct {
	At     time.Time
	Record workload.Record // with phase rejected only id, queue, phase and reason
	// MessageID is of the submission that was rejected; empty when it had none.
	MessageID string
	// Warnings are those of the submission, in its first step.
	Warnings []string
}

// errNoStep is wrapped for an event that tells nothing of a workload's life.
var errNoStep = errors.New("not an event of a workload's life")

// Read turns a message of the events stream into a step.
func Read(d bus.Delivery) (Step, error) {
	envelope, payload, err := d.Event()
	if err != nil {
		return Step{}, err
	}
	switch e := payload.(type) {
	case *event.WorkloadChanged:
		return Step{At: envelope.Time, Record: e.Record, Warnings: e.Warnings}, nil
	case *event.WorkloadRejected:
		reason := e.Reason
		return Step{At: envelope.Time, MessageID: e.MessageID, Record: workload.Record{
			Workload: workload.Workload{ID: e.Workload, Queue: e.Queue},
			Phase:    workload.Rejected, Reason: &reason,
		}}, nil
	}
	return Step{}, fmt.Errorf("message %d on %s: %w: %s", d.Sequence, d.Subject, errNoStep, envelope.Type)
}

// Life is a subscription to the events of one workload.
type Life struct {
	deliveries <-chan bus.Delivery
	// Before is the last step from before the subscription, nil for none.
	Before *Step
}

// Start subscribes. It ends with ctx.
func Start(ctx context.Context, b *bus.Bus, queue string, id workload.ID) (*Life, error) {
	following, err := b.Follow(ctx, bus.EventsStream, bus.EventsSubject(queue, id))
	if err != nil {
		return nil, err
	}
	life := &Life{deliveries: following.C}
	select {
	case <-following.CaughtUp:
	case <-ctx.Done():
		return nil, fmt.Errorf("read what is known of workload %s: %w", id, ctx.Err())
	}
	select {
	case d := <-following.C: // one subject has one last value
		step, err := Read(d)
		if err != nil {
			return nil, err
		}
		life.Before = &step
	default:
	}
	return life, nil
}

// Next waits for the next step. The error is the context's when that ends.
func (l *Life) Next(ctx context.Context) (Step, error) {
	for {
		select {
		case <-ctx.Done():
			return Step{}, ctx.Err()
		case d, open := <-l.deliveries:
			if !open {
				return Step{}, fmt.Errorf("the subscription ended: %w", context.Canceled)
			}
			step, err := Read(d)
			if errors.Is(err, errNoStep) || errors.Is(err, event.ErrUnknownType) {
				continue // of a newer version than this program
			}
			return step, err
		}
	}
}
