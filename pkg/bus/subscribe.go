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

// buffered messages wait in a subscription's channel; when it is full the
// server sends no more.
const buffered = 256

// drainTimeout bounds the wait for messages that have arrived at a stop.
const drainTimeout = time.Second

// resubscribeAfter is the pause before another try to subscribe.
const resubscribeAfter = 250 * time.Millisecond

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
		}, jetstream.PullMaxMessages(buffered))
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
	if err := drain(ctx, following, func(d Delivery) { values = append(values, d) }); err != nil {
		return nil, fmt.Errorf("read %v of stream %s: %w", filters, stream, err)
	}
	return values, nil
}

// drain calls each with what existed at the start of a subscription.
func drain(ctx context.Context, following *Following, each func(Delivery)) error {
	caughtUp := following.CaughtUp
	for caughtUp != nil || len(following.C) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-following.C:
			each(d)
		case <-caughtUp:
			caughtUp = nil
		}
	}
	return nil
}

// keepConsuming hands messages over until ctx ends, from the consumer or, without
// one, from what subscribe returns. When the connection was lost or the consumer
// fails it subscribes again.
func (b *Bus) keepConsuming(ctx context.Context, consumer jetstream.Consumer,
	subscribe func(context.Context) (jetstream.Consumer, error), handle jetstream.MessageHandler, limit jetstream.PullConsumeOpt,
) {
	reconnected, done := b.Reconnected()
	defer done()
	for ctx.Err() == nil {
		if consumer != nil {
			b.consume(ctx, consumer, handle, limit, reconnected)
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if consumer, err = subscribe(ctx); err != nil {
			consumer = nil
			if ctx.Err() != nil {
				return
			}
			b.logger.Warn("cannot subscribe; trying again", zap.Error(err), zap.Duration("after", resubscribeAfter))
			b.restoreStreams(ctx, err)
			wait(ctx, resubscribeAfter)
		}
	}
}

// consume returns when ctx ends, the connection was restored, or the consumer
// cannot go on.
func (b *Bus) consume(ctx context.Context, consumer jetstream.Consumer, handle jetstream.MessageHandler,
	limit jetstream.PullConsumeOpt, reconnected <-chan struct{},
) {
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(handle,
		limit,
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
		if errors.Is(err, jetstream.ErrConsumerDeleted) {
			// Who deleted it makes it anew, and must not be met halfway: two at the same
			// moment can leave one in the server whose files are gone.
			wait(ctx, resubscribeAfter)
		}
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
