package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// apply enters the batch into the book and returns what settles its messages
// after the commit.
func (desk *Desk) apply(ctx context.Context, batch []bus.Delivery, now time.Time) (settle []func(), err error) {
	envelopes, payloads := make([]event.Envelope, len(batch)), make([]event.Payload, len(batch))
	var ids []workload.ID
	for i, d := range batch {
		if cause, known := desk.poison.cause(d); known {
			desk.bury(ctx, d, cause)
			continue
		}
		envelope, payload, err := d.Event()
		if err != nil {
			desk.bury(ctx, d, err.Error())
			continue
		}
		envelopes[i], payloads[i] = envelope, payload
		switch p := payload.(type) {
		case *event.WorkloadSubmitted:
			ids, payloads[i] = desk.withID(ctx, ids, p.Workload.ID, d, payload)
			if p.Former != "" && payloads[i] != nil {
				ids, payloads[i] = desk.withID(ctx, ids, p.Former, d, payload)
			}
		case *event.WorkloadCancel:
			ids, payloads[i] = desk.withID(ctx, ids, p.Workload, d, payload)
		case *event.WorkloadRelease:
			ids, payloads[i] = desk.withID(ctx, ids, p.Workload, d, payload)
		}
	}
	known, err := desk.known(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, payload := range payloads {
		d := batch[i]
		switch p := payload.(type) {
		case *event.WorkloadSubmitted:
			var stored *book.Known
			if found, ok := known[p.Workload.ID]; ok {
				stored = &found
			} else if found, ok := known[p.Former]; ok && p.Former != "" && found.Submitter == p.Workload.Submitter {
				found.Former, found.Record = p.Former, nil
				stored = &found
			}
			if _, err := desk.take(d, envelopes[i], p, stored, now); err != nil {
				return nil, err
			}
			settle = append(settle, d.Ack)
		case *event.WorkloadCancel:
			_, stored := known[p.Workload]
			live, err := desk.take(d, envelopes[i], p, nil, now)
			if err != nil {
				return nil, err
			}
			settle = append(settle, desk.cancel(ctx, p.Workload, d, live || stored)) // stored but not live: it has finished
		case *event.WorkloadRelease:
			_, stored := known[p.Workload]
			live, err := desk.take(d, envelopes[i], p, nil, now)
			if err != nil {
				return nil, err
			}
			settle = append(settle, desk.cancel(ctx, p.Workload, d, live || stored))
		case *event.NodeObserved, *event.NodeRemoved, *event.CapacitySynced, *event.GangObserved, *event.GangStatus:
			if d.Settles() { // an observation is no work; nobody would settle it
				desk.bury(ctx, d, p.EventType()+" is not for queue-manager to do")
				continue
			}
			if err := checkTold(d, p, now); err != nil {
				desk.bury(ctx, d, err.Error())
				continue
			}
			if _, err := desk.take(d, envelopes[i], p, nil, now); err != nil {
				return nil, err
			}
		case nil:
		default:
			desk.bury(ctx, d, p.EventType()+" is not for queue-manager")
		}
	}
	return settle, nil
}

// withID adds the id of a workload, or drops the message when it is none.
func (desk *Desk) withID(ctx context.Context, ids []workload.ID, id workload.ID, d bus.Delivery, payload event.Payload) ([]workload.ID, event.Payload) {
	if err := uuid.Validate(string(id)); err != nil {
		desk.bury(ctx, d, fmt.Sprintf("workload id %q is no UUID", id))
		return ids, nil
	}
	return append(ids, id), payload
}

// A cancellation or release may overtake its submission; it is tried again for a while.
const (
	cancelRetries    = 10
	cancelRetryAfter = 500 * time.Millisecond
)

func (desk *Desk) cancel(ctx context.Context, id workload.ID, d bus.Delivery, known bool) (settle func()) {
	switch {
	case desk.Book.IsKept(id):
		return func() {
			desk.bury(ctx, d, fmt.Sprintf("workload %s is in quarantine, because the database refuses to store what happens to it: take it out of quarantine first", id))
		}
	case known:
		return d.Ack
	case d.Attempts <= cancelRetries:
		return func() { d.Retry(cancelRetryAfter) }
	default:
		return func() { desk.bury(ctx, d, fmt.Sprintf("there is no workload %s to cancel or release", id)) }
	}
}
