package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// buffered messages wait in a subscription's channel; when it is full the
// server sends no more.
const buffered = 256

// followedBytes bounds what the server has on its way to a subscription: it closes a
// connection for which more than its max_pending waits, 32 MB as we set it up. The
// largest message (max_payload) has to fit.
const followedBytes = 12 << 20

// drainTimeout bounds the wait for messages that have arrived at a stop.
const drainTimeout = time.Second

const (
	// resubscribeAfter is the pause before another try to subscribe; it doubles with
	// each until resubscribeMost. Every try is an entry in the log that all servers
	// of a cluster share: without a pause it is they that cannot keep up.
	resubscribeAfter = 250 * time.Millisecond
	resubscribeMost  = 4 * time.Second
	// heartbeatEvery is how often a server says that a consumer of work has nothing:
	// a request that got lost with its server is repeated after two of them.
	heartbeatEvery = 2 * time.Second
	// silentMost is how long a durable consumer may be without a server that answers
	// for it, before it is created again. Servers that lose one of them take up to 15 s
	// to see it and as long to agree on another.
	silentMost = 30 * time.Second
)

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
		handle := func(msg jetstream.Msg) {
			select {
			case out <- newDelivery(msg, false):
			case <-ctx.Done():
				return
			}
			progress.advance()
		}
		b.keepConsuming(ctx, consumer, subscription{
			subscribe: subscribe, handle: handle, passing: orderedPassing,
			options: []jetstream.PullConsumeOpt{jetstream.PullMaxMessagesWithBytesLimit(buffered, followedBytes)},
		})
	}()
	return &Following{C: out, CaughtUp: progress.done}, nil
}

// catchUp counts what is missing of the values that existed when a subscription
// began. A reconnection restarts it: the stream may have other values then.
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

// subscription is how a consumer is made and read.
type subscription struct {
	// subscribe makes the consumer, or finds it.
	subscribe func(context.Context) (jetstream.Consumer, error)
	handle    jetstream.MessageHandler
	options   []jetstream.PullConsumeOpt
	// passing tells the errors after which the same consumer goes on by itself, when
	// they end within silentMost.
	passing func(error) bool
}

// keepConsuming hands messages over until ctx ends, from the consumer or, without
// one, from what subscribe returns. When the connection was lost or the consumer
// fails it subscribes again.
func (b *Bus) keepConsuming(ctx context.Context, consumer jetstream.Consumer, s subscription) {
	reconnected, done := b.Reconnected()
	defer done()
	pause := resubscribeAfter
	for ctx.Err() == nil {
		if consumer != nil {
			began := time.Now()
			err := b.consume(ctx, consumer, s, reconnected)
			if time.Since(began) > resubscribeMost {
				pause = resubscribeAfter
			}
			if err != nil && ctx.Err() == nil {
				b.logger.Warn("consumer failed; subscribing again", zap.Error(err), zap.Duration("after", pause))
				wait(ctx, pause)
				pause = min(2*pause, resubscribeMost)
			}
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		if consumer, err = s.subscribe(ctx); err != nil {
			consumer = nil
			if ctx.Err() != nil {
				return
			}
			b.logger.Warn("cannot subscribe; retrying", zap.Error(err), zap.Duration("after", pause))
			b.restoreStreams(ctx, err)
			wait(ctx, pause)
			pause = min(2*pause, resubscribeMost)
		}
	}
}

// consume returns when ctx ends, the connection was restored, or, with an error,
// the consumer cannot go on. The handler is not running then, and is not called any
// more.
func (b *Bus) consume(ctx context.Context, consumer jetstream.Consumer, s subscription, reconnected <-chan struct{}) error {
	failed := make(chan error, 1)
	silent := silence{most: silentMost, gap: 4 * heartbeatEvery}
	handler := gate{handle: s.handle}
	defer handler.shut()
	consuming, err := consumer.Consume(handler.message, append(slices.Clip(s.options),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if errors.Is(err, jetstream.ErrConnectionClosed) || s.passing(err) && !silent.tooLong(time.Now()) {
				return // the library asks again by itself; a lost connection restarts us
			}
			select {
			case failed <- err:
			default:
			}
		}))...)
	if err != nil {
		return err
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
		// The process that deleted a consumer creates it again, and must not be met halfway: two at the
		// same moment can leave one in the server whose files are gone. The pause before
		// the next try is for that, too.
		return err
	case <-consuming.Closed():
		return errClosed
	}
	return nil
}

// gate hands messages to a handler until it is shut. The library may call a handler
// after reading was stopped; by then what it writes to may be closed, or another
// subscription may have started again. Its methods may be called concurrently.
type gate struct {
	handle jetstream.MessageHandler

	mu     sync.Mutex
	closed bool
}

func (g *gate) message(msg jetstream.Msg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.handle(msg)
	}
}

// shut waits for the handler to return.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// errClosed says that the library has ended a consumer without an error.
var errClosed = errors.New("reading has ended")

// silence is for how long no server has answered for a consumer, as far as its errors
// tell: while none does they come in gaps of two heartbeats. Its method may be
// called concurrently.
type silence struct {
	most, gap time.Duration

	mu          sync.Mutex
	since, last time.Time
}

// tooLong notes an error.
func (s *silence) tooLong(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) > s.gap {
		s.since = now
	}
	s.last = now
	return now.Sub(s.since) > s.most
}

// durablePassing are errors of a durable consumer whose servers are looking for
// another leader.
func durablePassing(err error) bool {
	return errors.Is(err, jetstream.ErrNoHeartbeat) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrConsumerLeadershipChanged)
}

// orderedPassing are errors after which the library recreates an ordered consumer
// by itself, and where it left off.
func orderedPassing(err error) bool { return errors.Is(err, jetstream.ErrNoHeartbeat) }

// restoreStreams creates the streams again when the server lost them.
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
