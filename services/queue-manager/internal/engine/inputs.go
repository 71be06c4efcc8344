package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// inputs are the subscriptions of a term.
type inputs struct {
	work     <-chan bus.Delivery
	capacity *bus.Following
	status   *bus.Following
	pending  []<-chan struct{} // not yet caught up
}

func subscribe(ctx context.Context, b *bus.Bus) (in *inputs, err error) {
	in = &inputs{}
	if in.capacity, err = b.Follow(ctx, bus.CapacityStream, bus.CapacityFilter("*")); err != nil {
		return nil, err
	}
	if in.status, err = b.Follow(ctx, bus.StatusStream, bus.StatusFilter()); err != nil {
		return nil, err
	}
	if in.work, err = b.Work(ctx, bus.Work{Stream: bus.WorkloadStream, Durable: bus.QueueManagerDurable, TakeOver: true}); err != nil {
		return nil, err
	}
	in.pending = []<-chan struct{}{in.capacity.CaughtUp, in.status.CaughtUp}
	return in, nil
}

// caughtUp is the next subscription to wait for; nil, which blocks for ever,
// when there is none.
func (in *inputs) caughtUp() <-chan struct{} {
	if len(in.pending) == 0 {
		return nil
	}
	return in.pending[0]
}

func (in *inputs) nextCaughtUp() { in.pending = in.pending[1:] }

// allCaughtUp says that what was observed before the term has been taken in:
// whatever had been put into the channels has been read from them, too.
func (in *inputs) allCaughtUp() bool {
	return len(in.pending) == 0 && len(in.capacity.C) == 0 && len(in.status.C) == 0
}

// gather takes what has arrived, observations before submissions, so that
// decisions are made on the newest picture.
func (e *engine) gather(first *bus.Delivery) []bus.Delivery {
	limit := batchLimit
	if e.single > 0 {
		limit = 1
	}
	var batch []bus.Delivery
	if first != nil {
		batch = append(batch, *first)
	}
	for _, channel := range []<-chan bus.Delivery{e.inputs.capacity.C, e.inputs.status.C, e.inputs.work} {
		for len(batch) < limit {
			select {
			case d, open := <-channel:
				if open {
					batch = append(batch, d)
					continue
				}
			default:
			}
			break
		}
	}
	return batch
}

// apply enters the batch into the book and returns what settles its messages
// after the commit.
func (e *engine) apply(ctx context.Context, batch []bus.Delivery) (settle []func(), err error) {
	payloads := make([]event.Payload, len(batch))
	var ids []workload.ID
	for i, d := range batch {
		_, payload, err := d.Event()
		if err != nil {
			e.Logger.Error("message dropped: it cannot be read", zap.Error(err))
			e.Metrics.unreadable.Inc()
			d.Reject(err.Error())
			continue
		}
		payloads[i] = payload
		switch p := payload.(type) {
		case *event.WorkloadSubmitted:
			ids, payloads[i] = e.withID(ids, p.Workload.ID, d, payload)
		case *event.WorkloadCancel:
			ids, payloads[i] = e.withID(ids, p.Workload, d, payload)
		}
	}
	known, err := e.Store.Known(ctx, ids)
	if err != nil {
		return nil, err
	}
	e.commits.known(ids, known)
	for i, payload := range payloads {
		d, now := batch[i], time.Now()
		switch p := payload.(type) {
		case *event.WorkloadSubmitted:
			var stored *book.Known
			if found, ok := known[p.Workload.ID]; ok {
				stored = &found
			}
			e.book.Submit(p, stored, now)
			settle = append(settle, d.Ack)
		case *event.WorkloadCancel:
			_, stored := known[p.Workload]
			settle = append(settle, e.cancel(p, d, stored, now))
		case *event.NodeObserved:
			e.book.Node(p, now)
		case *event.NodeRemoved:
			e.book.NodeRemoved(p, now)
		case *event.CapacitySynced:
			e.book.Synced(p, now)
		case *event.GangObserved:
			e.book.Gang(p, now)
		case *event.GangStatus:
			e.book.Status(p, now)
		case nil:
		default:
			e.Logger.Error("message dropped: not for queue-manager", zap.String("type", p.EventType()), zap.String("subject", d.Subject))
			d.Reject(fmt.Sprintf("%s is not for queue-manager", p.EventType()))
		}
	}
	return settle, nil
}

// withID adds the id of a workload, or drops the message when it is none.
func (e *engine) withID(ids []workload.ID, id workload.ID, d bus.Delivery, payload event.Payload) ([]workload.ID, event.Payload) {
	if err := uuid.Validate(string(id)); err != nil {
		e.Logger.Error("message dropped: its workload id is no UUID", zap.String("subject", d.Subject), zap.String("id", string(id)))
		e.Metrics.unreadable.Inc()
		d.Reject("workload id " + string(id) + " is no UUID")
		return ids, nil
	}
	return append(ids, id), payload
}

// A cancellation may overtake its submission; it is tried again for a while.
const (
	cancelRetries    = 10
	cancelRetryAfter = 500 * time.Millisecond
)

func (e *engine) cancel(c *event.WorkloadCancel, d bus.Delivery, stored bool, now time.Time) (settle func()) {
	switch {
	case e.book.Cancel(c, now), stored: // stored but not live: it has finished
		return d.Ack
	case d.Attempts <= cancelRetries:
		return func() { d.Retry(cancelRetryAfter) }
	default:
		e.Logger.Warn("cancellation dropped: there is no such workload", zap.String("workload", string(c.Workload)))
		return func() { d.Reject("no such workload") }
	}
}

// setApart keeps an input that Postgres cannot store from blocking the others:
// its submitter is told, and the message is given up.
func (e *engine) setApart(ctx context.Context, d bus.Delivery, cause error) error {
	_, payload, _ := d.Event()
	submitted, ok := payload.(*event.WorkloadSubmitted)
	if !ok {
		return cause
	}
	w := submitted.Workload
	rejection, err := event.New("queue-manager/unstorable/"+string(w.ID), "muster/queue-manager", time.Now(), &event.WorkloadRejected{
		Workload: w.ID, Queue: w.Queue, MessageID: submitted.MessageID,
		Reason: workload.Reason{Kind: workload.ReasonInvalid, Message: "the submission cannot be stored: " + cause.Error()},
	})
	if err != nil {
		return err
	}
	if err := e.Bus.Publish(ctx, bus.EventsSubject(w.Queue, w.ID), rejection); err != nil {
		return err
	}
	e.Logger.Error("submission set apart: it cannot be stored", zap.String("workload", string(w.ID)), zap.Error(cause))
	d.Reject(cause.Error())
	return fmt.Errorf("read anew after a submission was set apart: %w", cause)
}
