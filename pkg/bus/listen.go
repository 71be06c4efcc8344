package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// ErrRefused is wrapped when NATS refuses what the connection's user has no right
// to.
var ErrRefused = errors.New("NATS refuses it to this user")

// listenTimeout bounds the wait for the server to know of a subscription.
const listenTimeout = 5 * time.Second

// Listen delivers what is published on a subject from now on, without a consumer: a
// right to read the subject is enough. What comes while the connection is lost, or
// while no delivery is read, is never delivered: a reader that needs the
// present state asks for it again. The channel ends with ctx.
func (b *Bus) Listen(ctx context.Context, subject string) (<-chan Delivery, error) {
	messages := make(chan *nats.Msg, buffered)
	subscription, err := b.nc.ChanSubscribe(subject, messages)
	if err != nil {
		return nil, fmt.Errorf("listen to %s: %w", subject, err)
	}
	// The server has it when it answers; a refusal comes before the answer.
	bounded, cancel := context.WithTimeout(ctx, listenTimeout)
	defer cancel()
	if err := b.nc.FlushWithContext(bounded); err != nil {
		return nil, errors.Join(fmt.Errorf("listen to %s: %w", subject, err), subscription.Unsubscribe())
	}
	out := make(chan Delivery)
	go func() {
		defer close(out)
		defer func() { _ = subscription.Unsubscribe() }() // it ends with the connection anyway
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-messages:
				select {
				case out <- Delivery{Subject: m.Subject, Headers: m.Header, Data: m.Data, Stored: time.Now()}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}

// Notify publishes an event to the present subscribers. No stream keeps it, and the server
// does not acknowledge it.
func (b *Bus) Notify(subject string, e event.Envelope) error {
	data, err := e.Encode()
	if err != nil {
		return err
	}
	if err := b.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("publish event %q on %s: %w", e.ID, subject, err)
	}
	return nil
}

// LastEvent returns the last event of a workload; nil when there is none. It needs a
// right to the queue only, and may be a little behind in a cluster of NATS servers.
func (b *Bus) LastEvent(ctx context.Context, queue string, id workload.ID) (*Delivery, error) {
	reply, err := b.nc.RequestWithContext(ctx, LastEventSubject(queue, id), nil)
	if errors.Is(err, nats.ErrNoResponders) {
		err = fmt.Errorf("%w: %w", ErrNoStream, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the last event of workload %s in queue %q: %w", id, queue, err)
	}
	switch status := reply.Header.Get("Status"); status {
	case "":
	case "404":
		return nil, nil
	default:
		return nil, fmt.Errorf("read the last event of workload %s in queue %q: %s %s", id, queue, status, reply.Header.Get("Description"))
	}
	d := &Delivery{Subject: reply.Header.Get(jetstream.SubjectHeader), Headers: reply.Header, Data: reply.Data}
	if d.Sequence, err = strconv.ParseUint(reply.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
		d.Stored, err = time.Parse(time.RFC3339Nano, reply.Header.Get(jetstream.TimeStampHeaer))
	}
	if err != nil {
		return nil, fmt.Errorf("read the last event of workload %s in queue %q: %w", id, queue, err)
	}
	return d, nil
}
