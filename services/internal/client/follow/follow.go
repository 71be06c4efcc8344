// Package follow follows the life of a workload in the stream of events, and
// judges whether it has reached the goal.
//
// It is not for asking what is true now; that is package query's.
package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
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

// errNoStep is wrapped for an event that has nothing of a workload's life.
var errNoStep = errors.New("not an event of a workload's life")

// Read turns a message of the events stream into a step.
func Read(d bus.Delivery) (Step, error) {
	envelope, payload, err := d.Event()
	if err != nil {
		return Step{}, err
	}
	step, known := StepOf(payload)
	if !known {
		return Step{}, fmt.Errorf("message %d on %s: %w: %s", d.Sequence, d.Subject, errNoStep, envelope.Type)
	}
	step.At = envelope.Time
	return step, nil
}

// StepOf is what an event has of a workload's life, without the time; known is false for
// one that has nothing of it.
func StepOf(payload event.Payload) (step Step, known bool) {
	switch e := payload.(type) {
	case *event.WorkloadChanged:
		return Step{Record: e.Record, Warnings: e.Warnings}, true
	case *event.WorkloadRejected:
		reason := e.Reason
		return Step{MessageID: e.MessageID, Record: workload.Record{
			Workload: workload.Workload{ID: e.Workload, Queue: e.Queue},
			Phase:    workload.Rejected, Reason: &reason,
		}}, true
	}
	return Step{}, false
}

// lookAgainAfter is how often the last event is read, beside those that come by
// themselves: while the connection is lost, or at the very moment of the start, one
// may be missed.
const lookAgainAfter = 2 * time.Second

// Life is a subscription to the events of one workload. It needs no rights but those
// of a tenant of the queue. Its methods may not be called concurrently.
type Life struct {
	bus        *bus.Bus
	queue      string
	id         workload.ID
	deliveries <-chan bus.Delivery
	seen       map[string]bool // the ids of events
	look       *time.Ticker
	// Before is the last step from before the subscription, nil for none.
	Before *Step
}

// Start subscribes. It ends with ctx.
func Start(ctx context.Context, b *bus.Bus, queue string, id workload.ID) (*Life, error) {
	deliveries, err := b.Listen(ctx, event.EventsSubject(queue, id))
	if err != nil {
		return nil, err
	}
	life := &Life{bus: b, queue: queue, id: id, deliveries: deliveries, seen: map[string]bool{}, look: time.NewTicker(lookAgainAfter)}
	context.AfterFunc(ctx, life.look.Stop)
	asked, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	last, err := b.LastEvent(asked, queue, id)
	if err != nil {
		return nil, err
	}
	if last == nil {
		return life, nil
	}
	step, known, err := life.read(*last)
	if err == nil && known {
		life.Before = &step
	}
	return life, err
}

// askTimeout bounds one look at the last event.
const askTimeout = 5 * time.Second

// Next waits for the next step. After a loss of the connection it is the last one
// there is. The error is the context's when that ends.
func (l *Life) Next(ctx context.Context) (Step, error) {
	for {
		var d *bus.Delivery
		select {
		case <-ctx.Done():
			return Step{}, ctx.Err()
		case next, open := <-l.deliveries:
			if !open {
				return Step{}, fmt.Errorf("the subscription ended: %w", context.Canceled)
			}
			d = &next
		case <-l.look.C:
			asked, cancel := context.WithTimeout(ctx, askTimeout)
			last, err := l.bus.LastEvent(asked, l.queue, l.id)
			cancel()
			if err != nil || last == nil {
				continue // looked for again, and what comes by itself needs no answer
			}
			d = last
		}
		step, known, err := l.read(*d)
		if err != nil || known {
			return step, err
		}
	}
}

// read returns the step that an event has of, once; known is false for one that
// was returned before, and for one of a newer version than this program.
func (l *Life) read(d bus.Delivery) (step Step, known bool, err error) {
	envelope, err := event.Parse(d.Data)
	if err != nil {
		return Step{}, false, err
	}
	key := envelope.Source + "/" + envelope.ID
	if l.seen[key] {
		return Step{}, false, nil
	}
	l.seen[key] = true
	step, err = Read(d)
	if errors.Is(err, errNoStep) || errors.Is(err, event.ErrUnknownType) {
		return Step{}, false, nil
	}
	return step, err == nil, err
}
