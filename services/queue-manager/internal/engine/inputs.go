package engine

import (
	"context"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// inputs are the subscriptions of a term.
type inputs struct {
	work     <-chan bus.Delivery
	checked  <-chan bus.Delivery // answers of AdmissionChecks
	capacity *bus.Following
	status   *bus.Following
	pending  []<-chan struct{} // not yet caught up
}

// subscribe subscribes to all inputs at once, because a term waits for each answer of NATS.
func subscribe(ctx context.Context, b *bus.Bus) (*inputs, error) {
	in := &inputs{}
	var group errgroup.Group // without a context of its own: the subscriptions outlive it
	group.Go(func() (err error) {
		in.capacity, err = b.Follow(ctx, bus.CapacityStream, event.CapacityFilter("*"))
		return err
	})
	group.Go(func() (err error) {
		in.status, err = b.Follow(ctx, bus.StatusStream, event.StatusFilter())
		return err
	})
	group.Go(func() (err error) {
		in.work, err = b.Work(ctx, bus.Work{Stream: bus.WorkloadStream, Durable: bus.QueueManagerDurable, TakeOver: true})
		return err
	})
	group.Go(func() (err error) {
		in.checked, err = b.Work(ctx, bus.Work{Stream: bus.CheckedStream, Durable: bus.QueueManagerDurable, TakeOver: true})
		return err
	})
	if err := group.Wait(); err != nil {
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

// allCaughtUp reports whether everything observed before the term has been read, from
// the streams and from the channels.
func (in *inputs) allCaughtUp() bool {
	return len(in.pending) == 0 && len(in.capacity.C) == 0 && len(in.status.C) == 0
}

// collectBatch takes the message that woke the loop, if any, and then what else has arrived:
// observations before submissions, so that decisions rest on the newest observed state.
func (l *leader) collectBatch(first *bus.Delivery) []bus.Delivery {
	limit := batchLimit
	if l.single > 0 {
		limit = 1
	}
	var batch []bus.Delivery
	bytes := 0
	if first != nil {
		batch, bytes = append(batch, *first), len(first.Data)
	}
	for _, channel := range []<-chan bus.Delivery{l.inputs.capacity.C, l.inputs.status.C, l.inputs.checked, l.inputs.work} {
		for len(batch) < limit && bytes < batchBytes {
			select {
			case d, open := <-channel:
				if open {
					batch, bytes = append(batch, d), bytes+len(d.Data)
					continue
				}
			default:
			}
			break
		}
	}
	for _, d := range batch {
		if event.IsCheckedSubject(d.Subject) {
			l.answers.receive(d.Sequence)
		}
	}
	return batch
}
