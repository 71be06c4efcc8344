package relay_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// stuck is NATS that never stores a message of one id, or of any id until another server
// leads the stream.
type stuck struct {
	*bus.Bus
	id string // empty for all

	mu    sync.Mutex
	asked []string // streams that another server was to lead
}

// PublishNext implements relay.Bus.
func (s *stuck) PublishNext(subject, id string, encoded []byte, ttl time.Duration, end bus.End) (bus.Published, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id || s.id == "" && len(s.asked) == 0 {
		err := fmt.Errorf("publish event %q: %w", id, bus.ErrInProcess)
		if s.id == "" {
			err = fmt.Errorf("publish event %q: %w", id, context.DeadlineExceeded)
		}
		return bus.PublishedBy(func(context.Context) (uint64, error) { return 0, err }), nil
	}
	return s.Bus.PublishNext(subject, id, encoded, ttl, end)
}

// StepDown implements relay.Bus.
func (s *stuck) StepDown(_ context.Context, stream string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, stream)
	return true, nil
}

// hurried are options of a relay whose clock goes on by a second with each look, and that
// does not pause.
func (w *world) hurried(server relay.Bus) relay.Options {
	var mu sync.Mutex
	now := time.Unix(1e9, 0)
	o := w.options(1, server)
	o.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
	o.Pause = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return o
}

// A server remembers a message that it never stored, and refuses its id. The message is
// published under another id, once, and in its place.
func TestAMessageThatStaysInProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for range 3 {
		want = append(want, w.event(t).EventID)
	}
	server := &stuck{Bus: w.bus, id: want[1]}
	r, _ := w.stoppable(t, w.hurried(server))
	w.drained(t)
	want = append(want, w.handEvent(t, r).EventID)
	w.drained(t)
	if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
	if len(server.asked) > 0 {
		t.Errorf("the leaders of %q were changed, although the messages are stored", server.asked)
	}
}

// A stream stores nothing until another server leads it.
func TestAStreamThatStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := []string{w.event(t).EventID}
	server := &stuck{Bus: w.bus}
	w.stoppable(t, w.hurried(server))
	w.drained(t)
	if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if !slices.Equal(server.asked, []string{bus.EventsStream}) {
		t.Errorf("another server was to lead %q, want it once for %s", server.asked, bus.EventsStream)
	}
}
