package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
)

// connectInside is a bus on a server of its own, with the streams.
func connectInside(t *testing.T) *Bus {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := Connect(t.Context(), Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAConsumerThatIsNotAnswered: NATS servers that look for a leader of a
// consumer say "no responders". Each new try to make the consumer is an entry in
// their common log; thousands of them have kept servers from agreeing at all.
func TestAConsumerThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	for name, passing := range map[string]func(error) bool{"of work": durablePassing, "of what is true": orderedPassing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := connectInside(t)
			ctx, cancel := context.WithCancel(t.Context())
			config := jetstream.ConsumerConfig{Durable: "test", AckPolicy: jetstream.AckExplicitPolicy}
			silent, err := b.js.CreateOrUpdateConsumer(ctx, SubmitStream, config)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.js.DeleteConsumer(ctx, SubmitStream, "test"); err != nil {
				t.Fatal(err)
			}
			var tries atomic.Int64
			read, ended := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(ended)
				b.keepConsuming(ctx, nil, subscription{
					subscribe: func(context.Context) (jetstream.Consumer, error) { tries.Add(1); return silent, nil },
					handle:    func(m jetstream.Msg) { _ = m.Ack(); close(read) },
					passing:   passing,
					options:   []jetstream.PullConsumeOpt{jetstream.PullHeartbeat(heartbeatEvery)},
				})
			}()
			t.Cleanup(func() { cancel(); <-ended })
			const watched = 3 * heartbeatEvery
			<-time.After(watched) // how often it tries in this time is what is tested
			if got := tries.Load(); got < 1 || got > 6 {
				t.Errorf("%d tries to subscribe within %s, want 1 to 6", got, watched)
			}
			// The servers have agreed.
			if _, err := b.js.CreateOrUpdateConsumer(ctx, SubmitStream, config); err != nil {
				t.Fatal(err)
			}
			e := event.Envelope{SpecVersion: "1.0", ID: "1", Source: "test", Type: "test"}
			if err := b.Publish(ctx, event.SubmitSubject("q"), e); err != nil {
				t.Fatal(err)
			}
			select {
			case <-read:
			case <-time.After(30 * time.Second):
				t.Errorf("nothing is read after %d tries", tries.Load())
			}
		})
	}
}

// lateConsumer calls its handler whenever the test says, also after it was stopped.
type lateConsumer struct {
	jetstream.Consumer
	handler chan jetstream.MessageHandler
}

func (c *lateConsumer) Consume(handler jetstream.MessageHandler, _ ...jetstream.PullConsumeOpt) (jetstream.ConsumeContext, error) {
	c.handler <- handler
	return &lateConsuming{closed: make(chan struct{})}, nil
}

type lateConsuming struct {
	jetstream.ConsumeContext
	closed chan struct{}
	once   sync.Once
}

func (c *lateConsuming) Stop()                   { c.once.Do(func() { close(c.closed) }) }
func (c *lateConsuming) Drain()                  { c.Stop() }
func (c *lateConsuming) Closed() <-chan struct{} { return c.closed }

// TestNothingIsHandedOverAfterTheEnd: the library may call a handler after reading was
// stopped, and what the handler writes to is closed then.
func TestNothingIsHandedOverAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := connectInside(t)
	ctx, cancel := context.WithCancel(t.Context())
	late := &lateConsumer{handler: make(chan jetstream.MessageHandler, 1)}
	out := make(chan struct{})
	running, handed := make(chan struct{}), 0
	go func() {
		defer close(out)
		b.keepConsuming(ctx, late, subscription{
			subscribe: func(context.Context) (jetstream.Consumer, error) { return late, nil },
			handle: func(jetstream.Msg) {
				handed++
				close(running)
				select {
				case out <- struct{}{}: // panics when it is closed
				case <-ctx.Done():
				}
			},
			passing: durablePassing,
		})
	}()
	handler := <-late.handler
	first := make(chan struct{})
	go func() { defer close(first); handler(nil) }()
	<-running
	cancel()
	for range out { // its only value may have been taken
		continue
	}
	<-first
	handler(nil)
	if handed != 1 {
		t.Errorf("%d messages were handed over, want the one before the end", handed)
	}
}

// TestSilence: errors that go on are too long, errors now and then are not.
func TestSilence(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		every time.Duration
		want  bool
	}{
		"all the time": {every: 4 * time.Second, want: true},
		"now and then": {every: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := silence{most: 30 * time.Second, gap: 8 * time.Second}
			got := false
			for at := time.Duration(0); at <= time.Minute; at += c.every {
				got = s.tooLong(began.Add(at))
			}
			if got != c.want {
				t.Errorf("%s: too long is %v, want %v", name, got, c.want)
			}
		})
	}
}
