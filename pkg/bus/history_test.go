package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestOneQueuesHistoryPushesNobodysOut: events of workloads that one queue submits and
// cancels without end, and what was taken of it, take the place of its own. All of what
// the other queue has stays, and the newest of the first one.
func TestOneQueuesHistoryPushesNobodysOut(t *testing.T) {
	t.Parallel()
	const room, honest, floods, flood = 8 << 20, 100, 20, 500
	for name, subject := range map[string]func(queue string, i int) string{
		bus.EventsStream: func(queue string, i int) string { return fmt.Sprintf("muster.events.%s.w%d", queue, i/3) },
		bus.KeptStream:   func(queue string, _ int) string { return "muster.kept." + queue },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Connect(t)
			stream := shrunk(t, b, name, room)
			put := func(queue string, from, messages, size int) {
				t.Helper()
				for i := range messages {
					answer, err := b.Conn().Request(subject(queue, from+i), bytes.Repeat([]byte("x"), size), 20*time.Second)
					if err != nil || bytes.Contains(answer.Data, []byte("error")) {
						t.Fatal(err, answer)
					}
				}
			}
			left := func(queue string) (messages uint64) {
				t.Helper()
				info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("muster.*."+queue+".>"))
				if name == bus.KeptStream {
					info, err = stream.Info(t.Context(), jetstream.WithSubjectFilter(subject(queue, 0)))
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range info.State.Subjects {
					messages += n
				}
				return messages
			}
			put("honest", 0, honest, 5000)
			dropped := uint64(0)
			for i := range floods { // each less than a quarter of the room, and all much more than there is
				put("hostile", i*flood, flood, 2000)
				cuts, err := bus.CutHistory(t.Context(), b, name)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range cuts {
					if c.Stream != name || c.Owner != "hostile" {
						t.Errorf("cut: %+v, want messages of the queue that has most", c)
					}
					dropped += c.Messages
				}
			}
			if dropped == 0 {
				t.Error("nothing was dropped")
			}
			if got := left("honest"); got != honest {
				t.Errorf("%d messages of the other queue are left, want all %d", got, honest)
			}
			if got := left("hostile"); got < room/4/2000 {
				t.Errorf("%d messages of the queue are left, want its newest in half of the room", got)
			}
			last, err := stream.GetLastMsgForSubject(t.Context(), subject("hostile", floods*flood-1))
			if err != nil || last == nil {
				t.Errorf("the newest message of the queue: %v", err)
			}
		})
	}
}

// shrunk gives a stream less room.
func shrunk(t *testing.T, b *bus.Bus, name string, room int64) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = room
	if stream, err = js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	return stream
}

// TestHistoryIsCutWhenItIsNearlyFull: one queue alone may have three quarters of a stream.
func TestHistoryIsCutWhenItIsNearlyFull(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	shrunk(t, b, bus.EventsStream, 1<<20)
	put := func(messages int) {
		for range messages {
			if _, err := b.Conn().Request("muster.events.q.w", bytes.Repeat([]byte("x"), 10_000), 20*time.Second); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(70)
	if cuts, err := bus.CutHistory(t.Context(), b, bus.EventsStream); err != nil || len(cuts) != 0 {
		t.Errorf("cut: %+v, %v; want nothing", cuts, err)
	}
	put(20)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var all []bus.Cut
	_ = b.KeepHistory(ctx, func(cuts []bus.Cut, err error) {
		if err != nil {
			t.Error(err)
		}
		all = cuts
		stop()
	})
	if len(all) != 1 || all[0].Stream != bus.EventsStream || all[0].Owner != "q" || all[0].Messages < 20 || all[0].Messages > 30 {
		t.Errorf("cut: %+v, want the oldest quarter or third of the queue", all)
	}
}

// TestLevelOf: those that have least keep all of it.
func TestLevelOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sizes       []uint64
		bound, want uint64
	}{
		"one":             {[]uint64{100}, 60, 60},
		"one of two":      {[]uint64{100, 10}, 60, 50},
		"both":            {[]uint64{100, 50}, 60, 30},
		"two of three":    {[]uint64{70, 10, 60}, 90, 40},
		"all fit":         {[]uint64{10, 20, 30}, 60, ^uint64(0)},
		"nothing":         {nil, 60, ^uint64(0)},
		"many, one level": {[]uint64{20, 20, 20, 20}, 40, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := bus.LevelOf(test.sizes, test.bound); got != test.want {
				t.Errorf("level of %d within %d: %d, want %d", test.sizes, test.bound, got, test.want)
			}
		})
	}
}
