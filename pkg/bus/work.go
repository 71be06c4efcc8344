package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Work names a stream of work and who reads it.
type Work struct {
	Stream, Durable string
	// AckWait is the time until an unsettled message comes again; zero for 5 s.
	// It is also how long a message may be delayed that was on its way to a
	// reader that died.
	AckWait time.Duration
	// MaxPending bounds delivered but unsettled messages of a subject; zero for
	// 4096.
	MaxPending int
	// TakeOver recreates the consumers, so that what their last reader has not
	// settled comes at once, and nothing more goes to that one: it may stand still
	// with its connection open.
	TakeOver bool
	// Dropped, unless nil, has messages of a subject dropped that floods a nearly full
	// stream (see share.go), and gets their number. It must not block.
	Dropped func(subject string, messages uint64)
}

// Work delivers the messages of a stream of work to the returned channel until
// ctx ends; the channel is then closed, and what was not taken from it is given
// back. Each delivery must be settled.
//
// Each subject has a durable consumer of its own, and they take turns, message by
// message: however many messages one has, those of another wait for as many as
// there are subjects, and for what is in the channel. The order within a subject is
// the stream's. Consumers are created when missing, also later when the server
// lost them.
func (b *Bus) Work(ctx context.Context, w Work) (<-chan Delivery, error) {
	out := make(chan Delivery, buffered)
	begin, err := b.work(ctx, w, func(ctx context.Context, d Delivery) bool {
		select {
		case <-ctx.Done():
			return false
		case out <- d:
			return true
		}
	})
	if err != nil {
		return nil, err
	}
	go func() {
		begin()
		close(out)
		returnUnread(out)
	}()
	return out, nil
}

// Handle is Work for readers whose messages may take long: handle is called for
// each message, one after the other for a subject, and for different subjects at
// the same time. A subject whose handler does not return delays no other. The
// returned function reads: it returns when ctx has ended and no handler runs. The
// context that a handler gets may end before.
func (b *Bus) Handle(ctx context.Context, w Work, handle func(context.Context, Delivery)) (read func(), err error) {
	return b.work(ctx, w, func(ctx context.Context, d Delivery) bool {
		if ctx.Err() != nil {
			return false
		}
		handle(ctx, d)
		return true
	})
}

// work returns what reads until ctx ends. deliver reports whether it has taken the
// message.
func (b *Bus) work(ctx context.Context, w Work, deliver func(context.Context, Delivery) bool) (begin func(), err error) {
	if w.AckWait == 0 {
		w.AckWait = 5 * time.Second
	}
	if w.MaxPending == 0 {
		w.MaxPending = 4096
	}
	// Before subjects had consumers of their own there was one for all.
	err = b.js.DeleteConsumer(ctx, w.Stream, w.Durable)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("read stream %s: %w", w.Stream, err)
	}
	l := &lanes{bus: b, work: w, deliver: deliver, look: make(chan chan<- struct{}), looks: make(chan look, 1), open: map[string]*lane{}}
	first, err := l.lookOnce(ctx)
	if err != nil {
		return nil, err
	}
	return func() { l.run(ctx, first) }, nil
}

// returnUnread returns what was not read any more, so that the next reader has it at
// once and not only after the AckWait.
func returnUnread(out <-chan Delivery) {
	for d := range out {
		d.Retry(0)
	}
}

// Redelivered returns how many messages of a stream of work have been delivered
// more than once and are not settled yet.
func (b *Bus) Redelivered(ctx context.Context, stream string) (redelivered int, err error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("read the state of stream %s: %w", stream, err)
	}
	consumers := s.ListConsumers(ctx)
	for info := range consumers.Info() {
		redelivered += info.NumRedelivered
	}
	if err := consumers.Err(); err != nil {
		return 0, fmt.Errorf("list consumers of stream %s: %w", stream, err)
	}
	return redelivered, nil
}
