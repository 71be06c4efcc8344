package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// TestStepDown: of three servers another one leads the stream, which takes messages. A single
// server keeps leading.
func TestStepDown(t *testing.T) {
	t.Parallel()
	for name, count := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := bus.Connect(t.Context(), bus.Options{URL: startServers(t, count, 8<<30)[0].ClientURL(), Name: "test", Replicas: count, Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
			if err := b.AwaitStreams(t.Context()); err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(b.Conn())
			if err != nil {
				t.Fatal(err)
			}
			leader := func() string {
				stream, err := js.Stream(t.Context(), bus.EventsStream)
				if err != nil || stream.CachedInfo().Cluster == nil {
					return ""
				}
				return stream.CachedInfo().Cluster.Leader
			}
			before := leader()
			changed, err := b.StepDown(t.Context(), bus.EventsStream)
			if err != nil || changed != (count > 1) {
				t.Fatalf("the leader stepped down: %t, %v, want %t", changed, err, count > 1)
			}
			poll, deadline := time.NewTicker(50*time.Millisecond), time.After(30*time.Second)
			defer poll.Stop()
			for changed && (leader() == "" || leader() == before) {
				select {
				case <-poll.C:
				case <-deadline:
					t.Fatalf("the stream is led by %q, and was by %q", leader(), before)
				}
			}
			for published(t.Context(), b, event.EventsSubject("q", "w"), "1") != nil {
				select {
				case <-poll.C:
				case <-deadline:
					t.Fatal("the stream takes no message")
				}
			}
		})
	}
}
