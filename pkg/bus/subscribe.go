package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
)

// drainTimeout bounds the wait for messages that have arrived at a stop.
const drainTimeout = time.Second

const (
	// resubscribeAfter is the pause before another try to subscribe; it doubles with
	// each until resubscribeMost. Every try is an entry in the log that all servers
	// of a cluster share: without a pause it is they that cannot keep up.
	resubscribeAfter = 250 * time.Millisecond
	resubscribeMost  = 4 * time.Second
	// heartbeatEvery is how often a server reports that a consumer of work has nothing:
	// a request that got lost with its server is repeated after two of them.
	heartbeatEvery = 2 * time.Second
	// silentMost is how long a durable consumer may be without a server that answers
	// for it, before it is created again. Servers that lose one of them take up to 15 s
	// to see it and as long to agree on another.
	silentMost = 30 * time.Second
)

// subscription is how a consumer is made and read.
type subscription struct {
	// subscribe makes the consumer, or finds it.
	subscribe func(context.Context) (jetstream.Consumer, error)
	handle    jetstream.MessageHandler
	options   []jetstream.PullConsumeOpt
	// passing recognizes the errors after which the same consumer goes on by itself, when
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
		// A reconnection before the consumer is created shows nothing against it. Left in
		// the channel it would end the reading at once, and what the server has just
		// handed out would come again only after its AckWait.
		select {
		case <-reconnected:
		default:
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

// errClosed means that the library has ended a consumer without an error.
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
