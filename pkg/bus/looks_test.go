package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestOneLookServesAll: a look for subjects, and for room, asks the server once.
func TestOneLookServesAll(t *testing.T) {
	t.Parallel()
	const looks = 5
	b := connectInside(t)
	asked := make(chan *nats.Msg, 100)
	monitor, err := nats.Connect(b.Conn().ConnectedUrl())
	if err != nil {
		t.Fatal(err)
	}
	defer monitor.Close()
	if _, err := monitor.ChanSubscribe("$JS.API.STREAM.INFO."+SubmitStream, asked); err != nil {
		t.Fatal(err)
	}
	if err := monitor.FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	l := &lanes{
		bus: b, work: Work{Stream: SubmitStream, Dropped: func(string, uint64) {}}, looks: make(chan look, 1), open: map[string]*lane{},
		deliver: func(context.Context, Delivery) bool { return true },
	}
	if _, err := l.lookOnce(t.Context()); err != nil { // finds the stream, too
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.keepRoom(ctx) }()
	for range looks {
		if again := l.lookAround(ctx); again != lookEvery {
			t.Errorf("an empty stream is looked at again after %s, want %s", again, lookEvery)
		}
	}
	cancel()
	<-ended
	if err := b.Conn().FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if err := monitor.FlushTimeout(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if got, most := len(asked), looks+2; got > most || got < looks {
		t.Errorf("%d looks were %d requests, want %d at most", looks, got, most)
	}
}
