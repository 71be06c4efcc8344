package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// buffered messages wait in a subscription's channel; when it is full the
// server sends no more.
const buffered = 256

// followedBytes bounds what the server has on its way to a subscription: it closes a
// connection for which more than its max_pending waits, 32 MB as we set it up. The
// largest message (max_payload) has to fit.
const followedBytes = 12 << 20

// followedFor is how long the server keeps the consumer of a subscription that has ended. It allows
// 1,000 consumers a stream, and each term of each service has some.
const followedFor = time.Minute

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
	return b.follow(ctx, stream, jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
}

// Replay delivers everything that the stream holds of the subjects that match,
// and every later message. After a reconnection it starts over.
func (b *Bus) Replay(ctx context.Context, stream string, filters ...string) (*Following, error) {
	return b.ReplaySince(ctx, stream, time.Time{}, filters...)
}

// ReplaySince is Replay without what was stored before a time; the zero time is before all.
func (b *Bus) ReplaySince(ctx context.Context, stream string, since time.Time, filters ...string) (*Following, error) {
	config := jetstream.OrderedConsumerConfig{FilterSubjects: filters, DeliverPolicy: jetstream.DeliverAllPolicy}
	if !since.IsZero() {
		config.DeliverPolicy, config.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	}
	return b.follow(ctx, stream, config)
}

func (b *Bus) follow(ctx context.Context, stream string, config jetstream.OrderedConsumerConfig) (*Following, error) {
	filters := config.FilterSubjects
	config.InactiveThreshold = followedFor
	progress := newCatchUp()
	subscribe := func(ctx context.Context) (jetstream.Consumer, error) {
		consumer, err := b.js.OrderedConsumer(ctx, stream, config)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("follow %v of stream %s: %w: %w", filters, stream, ErrNoStream, err)
		}
		if err != nil {
			return nil, fmt.Errorf("follow %v of stream %s: %w", filters, stream, err)
		}
		info, err := infoOf(ctx, consumer)
		if err != nil {
			return nil, fmt.Errorf("follow %v of stream %s: %w", filters, stream, err)
		}
		progress.begin(consumer, info.NumPending)
		return consumer, nil
	}
	consumer, err := untilFree(ctx, subscribe)
	if err != nil {
		return nil, err
	}
	out := make(chan Delivery, buffered)
	go func() {
		defer close(out)
		handle := func(msg jetstream.Msg) {
			progress.startHandling()
			select {
			case out <- newDelivery(msg, false):
			case <-ctx.Done():
				return
			}
			progress.advance(msg)
		}
		go progress.look(ctx)
		b.keepConsuming(ctx, consumer, subscription{
			subscribe: subscribe, handle: handle, passing: orderedPassing,
			options: []jetstream.PullConsumeOpt{jetstream.PullMaxMessagesWithBytesLimit(buffered, followedBytes)},
		})
	}()
	return &Following{C: out, CaughtUp: progress.done}, nil
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

// freeWithin bounds how long a reader waits for its turn to have a consumer; retryBusy is the pause
// between its tries.
const (
	freeWithin = 5 * time.Second
	retryBusy  = 100 * time.Millisecond
)

// untilFree subscribes again while too many others of the same subjects do.
func untilFree(ctx context.Context, subscribe func(context.Context) (jetstream.Consumer, error)) (jetstream.Consumer, error) {
	for end := time.Now().Add(freeWithin); ; {
		consumer, err := subscribe(ctx)
		var refused *jetstream.APIError
		if err == nil || !errors.As(err, &refused) || refused.Code != guardBusy || time.Now().After(end) {
			return consumer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryBusy):
		}
	}
}
