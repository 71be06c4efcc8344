package bus_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
)

// TestFollowingGoesOnWithoutRepeating: a follower gets each event once,
// in order, over a restart of NATS, and when the stream is made again and its events are
// published once more under their ids.
func TestFollowingGoesOnWithoutRepeating(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := natsserver.Start(dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	put := func(from, to int) {
		t.Helper()
		for i := from; i <= to; i++ {
			e := event.Envelope{SpecVersion: "1.0", ID: fmt.Sprint(i), Source: "test", Type: "test"}
			if err := b.Publish(t.Context(), event.EventsSubject("q", "w"), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	following, err := b.Replay(t.Context(), bus.EventsStream, event.EventsSubject("q", "w"))
	if err != nil {
		t.Fatal(err)
	}
	var duplicates bus.Duplicates
	var heard []string
	await := func(when string, last int) {
		t.Helper()
		deadline := time.After(time.Minute)
		for len(heard) == 0 || heard[len(heard)-1] != fmt.Sprint(last) {
			select {
			case d := <-following.C:
				if !duplicates.Seen(d) {
					heard = append(heard, d.MessageID())
				}
			case <-deadline:
				t.Fatalf("%s: heard %v, want up to %d", when, heard, last)
			}
		}
		var want []string
		for i := 1; i <= last; i++ {
			want = append(want, fmt.Sprint(i))
		}
		if !slices.Equal(heard, want) {
			t.Errorf("%s: heard %v, want each once up to %d", when, heard, last)
		}
	}
	put(1, 3)
	await("at first", 3)

	reconnected, done := b.Reconnected()
	defer done()
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if server, err = natsserver.Start(dir, port); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reconnected:
	case <-time.After(time.Minute):
		t.Fatal("no reconnection")
	}
	put(4, 6)
	await("after a restart", 6)

	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), bus.EventsStream); err != nil {
		t.Fatal(err)
	}
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(1, 7)
	await("in a stream that was made again", 7)
}
