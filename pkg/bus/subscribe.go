package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// Work names a durable consumer of a stream.
type Work struct {
	Stream, Durable string
	// Filter selects subjects; empty for all of the stream.
	Filter string
	// AckWait is the time until an unsettled message comes again; zero for 5 s.
	// It is also how long a message may be delayed that was on its way to a
	// reader that died.
	AckWait time.Duration
	// MaxPending bounds delivered but unsettled messages; zero for 4096.
	MaxPending int
	// TakeOver makes the consumer anew, so that what its last reader has not
	// settled comes at once, and nothing more goes to that one: it may stand still
	// with its connection open.
	TakeOver bool
}

// buffered messages wait in a subscription's channel; when it is full the
// server sends no more.
const buffered = 256

// drainTimeout bounds the wait for messages that have arrived at a stop.
const drainTimeout = time.Second

// resubscribeAfter is the pause before another try to subscribe.
const resubscribeAfter = 250 * time.Millisecond

// Work delivers the messages of a durable consumer to the returned channel
// until ctx ends; the channel is then closed, and what was not taken from it is
// given back. Each delivery must be settled.
// The consumer is created when missing, also later when the server lost it.
func (b *Bus) Work(ctx context.Context, w Work) (<-chan Delivery, error) {
	if w.AckWait == 0 {
		w.AckWait = 5 * time.Second
	}
	if w.MaxPending == 0 {
		w.MaxPending = 4096
	}
	subscribe := func(ctx context.Context) (jetstream.Consumer, error) {
		consumer, err := b.js.CreateOrUpdateConsumer(ctx, w.Stream, jetstream.ConsumerConfig{
			Durable: w.Durable, FilterSubject: w.Filter, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: w.AckWait, MaxAckPending: w.MaxPending, MaxDeliver: -1,
		})
		if err != nil {
			return nil, fmt.Errorf("create consumer %s of stream %s: %w", w.Durable, w.Stream, err)
		}
		return consumer, nil
	}
	if w.TakeOver {
		err := b.js.DeleteConsumer(ctx, w.Stream, w.Durable)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("take over consumer %s of stream %s: %w", w.Durable, w.Stream, err)
		}
	}
	consumer, err := subscribe(ctx)
	if err != nil {
		return nil, err
	}
	out := make(chan Delivery, buffered)
	go func() {
		defer close(out)
		b.keepConsuming(ctx, consumer, subscribe, func(msg jetstream.Msg) {
			d := newDelivery(msg, true)
			select {
			case <-ctx.Done():
				d.Retry(0)
			case out <- d:
			}
		})
		giveBack(out)
	}()
	return out, nil
}

// giveBack returns what nobody took any more, so that the next reader has it at
// once and not only after the AckWait.
func giveBack(out <-chan Delivery) {
	for {
		select {
		case d := <-out:
			d.Retry(0)
		default:
			return
		}
	}
}

// Following is a subscription to what is true.
type Following struct {
	// C delivers the last value of each subject, then changes; closed when the
	// context ends.
	C <-chan Delivery
	// CaughtUp is closed when the values that existed at the start of Follow, or
	// at the reconnection that came before it was done, have been put into C.
	CaughtUp <-chan struct{}
}

// Follow delivers the last value of each subject that matches, in stream order,
// and every later one. After a reconnection it starts over.
func (b *Bus) Follow(ctx context.Context, stream string, filters ...string) (*Following, error) {
	return b.follow(ctx, stream, jetstream.DeliverLastPerSubjectPolicy, filters)
}

// Replay delivers everything that the stream holds of the subjects that match,
// and every later message. After a reconnection it starts over.
func (b *Bus) Replay(ctx context.Context, stream string, filters ...string) (*Following, error) {
	return b.follow(ctx, stream, jetstream.DeliverAllPolicy, filters)
}

func (b *Bus) follow(ctx context.Context, stream string, from jetstream.DeliverPolicy, filters []string) (*Following, error) {
	progress := newCatchUp()
	subscribe := func(ctx context.Context) (jetstream.Consumer, error) {
		consumer, err := b.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
			FilterSubjects: filters, DeliverPolicy: from,
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("follow %v of stream %s: %w: %w", filters, stream, ErrNoStream, err)
		}
		if err != nil {
			return nil, fmt.Errorf("follow %v of stream %s: %w", filters, stream, err)
		}
		info, err := consumer.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("follow %v of stream %s: %w", filters, stream, err)
		}
		progress.begin(info.NumPending)
		return consumer, nil
	}
	consumer, err := subscribe(ctx)
	if err != nil {
		return nil, err
	}
	out := make(chan Delivery, buffered)
	go func() {
		defer close(out)
		b.keepConsuming(ctx, consumer, subscribe, func(msg jetstream.Msg) {
			select {
			case out <- newDelivery(msg, false):
			case <-ctx.Done():
				return
			}
			progress.advance()
		})
	}()
	return &Following{C: out, CaughtUp: progress.done}, nil
}

// catchUp counts what is missing of the values that existed when a subscription
// began. A reconnection begins it anew: the stream may have other values then.
type catchUp struct {
	mu      sync.Mutex
	missing uint64
	reached bool
	done    chan struct{}
}

func newCatchUp() *catchUp { return &catchUp{done: make(chan struct{})} }

func (c *catchUp) begin(missing uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = missing
	c.check()
}

func (c *catchUp) advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing > 0 {
		c.missing--
		c.check()
	}
}

func (c *catchUp) check() {
	if c.missing == 0 && !c.reached {
		c.reached = true
		close(c.done)
	}
}

// LastValues returns the last value of each subject that matches, in stream
// order.
func (b *Bus) LastValues(ctx context.Context, stream string, filters ...string) ([]Delivery, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	following, err := b.Follow(ctx, stream, filters...)
	if err != nil {
		return nil, err
	}
	var values []Delivery
	caughtUp := following.CaughtUp
	for caughtUp != nil || len(following.C) > 0 {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read %v of stream %s: %w", filters, stream, ctx.Err())
		case d := <-following.C:
			values = append(values, d)
		case <-caughtUp:
			caughtUp = nil
		}
	}
	return values, nil
}

// Redelivered returns how many messages of a durable consumer have been
// delivered more than once and are not settled yet.
func (b *Bus) Redelivered(ctx context.Context, stream, durable string) (int, error) {
	consumer, err := b.js.Consumer(ctx, stream, durable)
	if err != nil {
		return 0, fmt.Errorf("look up consumer %s of stream %s: %w", durable, stream, err)
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("look up consumer %s of stream %s: %w", durable, stream, err)
	}
	return info.NumRedelivered, nil
}

// keepConsuming hands messages over until ctx ends. When the connection was
// lost or the consumer fails it subscribes again.
func (b *Bus) keepConsuming(ctx context.Context, consumer jetstream.Consumer,
	subscribe func(context.Context) (jetstream.Consumer, error), handle jetstream.MessageHandler,
) {
	reconnected, done := b.Reconnected()
	defer done()
	for ctx.Err() == nil {
		if consumer != nil {
			b.consume(ctx, consumer, handle, reconnected)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if consumer, err = subscribe(ctx); err != nil {
			consumer = nil
			b.logger.Warn("cannot subscribe; trying again", zap.Error(err), zap.Duration("after", resubscribeAfter))
			b.restoreStreams(ctx, err)
			wait(ctx, resubscribeAfter)
		}
	}
}

// consume returns when ctx ends, the connection was restored, or the consumer
// cannot go on.
func (b *Bus) consume(ctx context.Context, consumer jetstream.Consumer, handle jetstream.MessageHandler,
	reconnected <-chan struct{},
) {
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(handle,
		jetstream.PullMaxMessages(buffered),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, jetstream.ErrConnectionClosed) {
				return // the library asks again by itself; a lost connection restarts us
			}
			select {
			case failed <- err:
			default:
			}
		}))
	if err != nil {
		b.logger.Warn("cannot consume; trying again", zap.Error(err), zap.Duration("after", resubscribeAfter))
		wait(ctx, resubscribeAfter)
		return
	}
	defer consuming.Stop()
	select {
	case <-ctx.Done():
		consuming.Drain() // hands over what has arrived; the handler gives it back
		select {
		case <-consuming.Closed():
		case <-time.After(drainTimeout):
		}
	case <-reconnected:
	case err := <-failed:
		b.logger.Warn("consumer failed; subscribing again", zap.Error(err))
	case <-consuming.Closed():
	}
}

// restoreStreams creates the streams anew when the server lost them.
func (b *Bus) restoreStreams(ctx context.Context, cause error) {
	if !errors.Is(cause, jetstream.ErrStreamNotFound) {
		return
	}
	if err := b.EnsureStreams(ctx); err != nil {
		b.logger.Warn("cannot restore streams", zap.Error(err))
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
