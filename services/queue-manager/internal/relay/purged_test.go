package relay_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// A purge leaves the stream of events as it was made and as long as it was. The server takes
// what it had in the last two minutes for duplicates.
func TestPurgedEventsComeBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away   bool // no relay runs during the purge
		newer  bool // an event is published before the loss is found
		broken bool // the database fails when the loss has been found
	}{
		"at once":                          {},
		"with a newer event":               {newer: true},
		"by the next term":                 {away: true},
		"by the term after a broken one":   {broken: true},
		"also with a newer one in between": {newer: true, broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			read, err := w.bus.Follow(t.Context(), bus.EventsStream, "muster.events.>")
			if err != nil {
				t.Fatal(err)
			}
			next := func() string {
				t.Helper()
				select {
				case d := <-read.C:
					return d.MessageID()
				case <-time.After(patience):
					t.Fatal("no further event comes")
					return ""
				}
			}
			r, stop := w.stoppable(t, w.options(1, w.bus))
			var all []string
			for range 3 {
				all = append(all, w.handEvent(t, r).EventID)
				if got := next(); got != all[len(all)-1] {
					t.Fatalf("the event %q came, want %q", got, all[len(all)-1])
				}
			}
			w.drained(t)
			if c.away {
				stop()
			}
			if c.broken {
				w.mu.Lock()
				w.historyErr = errors.New("the connection is gone")
				w.mu.Unlock()
			}
			w.purge(t, bus.EventsStream)
			if c.newer {
				all = append(all, w.handEvent(t, r).EventID)
				w.drained(t)
			}
			if c.broken {
				w.lostNoted(t)
				stop()
				w.mu.Lock()
				w.historyErr = nil
				w.mu.Unlock()
			}
			if c.away || c.broken {
				w.stoppable(t, w.options(1, w.bus))
			}
			var back []string
			for len(back) < len(all) || !slices.Equal(back[len(back)-len(all):], all) {
				if len(back) > 2*len(all) {
					t.Fatalf("the events %q came, want %q as the last ones", back, all)
				}
				back = append(back, next())
			}
			if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, back) {
				t.Errorf("the stream has the events %q, want %q", got, back)
			}
		})
	}
}

// A stream without messages lost nothing when its events are too old, or were not published
// yet.
func TestAnEmptyStreamIsNotAlwaysPurged(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"what it had has expired": false, "its only event waits in the outbox": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			old := w.add(t, event.EventsSubject("q", "w1"), &event.WorkloadCancel{Workload: "w1"}) // it is not in the history
			_, stop := w.stoppable(t, w.options(1, w.bus))
			w.drained(t)
			stop()
			w.purge(t, bus.EventsStream)
			want := []string(nil)
			if kept {
				want = append(want, w.event(t).EventID)
			}
			w.noted = func(stream string, watermark store.Watermark) {
				if stream == bus.EventsStream && watermark.Created.Year() < 2000 {
					t.Errorf("the stream is taken for one that has lost %q", old.EventID)
				}
			}
			r, _ := w.stoppable(t, w.options(1, w.bus))
			last := w.handEvent(t, r)
			w.drained(t)
			if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, append(want, last.EventID)) {
				t.Errorf("the stream has %q, want %q", got, append(want, last.EventID))
			}
		})
	}
}

// purge removes all messages of a stream.
func (w *world) purge(t *testing.T, name string) {
	t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lostNoted waits until the loss of events is in the watermark.
func (w *world) lostNoted(t *testing.T) {
	t.Helper()
	noted := make(chan struct{}, 1)
	w.mu.Lock()
	w.noted = func(stream string, watermark store.Watermark) {
		if stream == bus.EventsStream && watermark.Created.Year() < 2000 {
			select {
			case noted <- struct{}{}:
			default:
			}
		}
	}
	was := w.watermarks[bus.EventsStream].Created
	w.mu.Unlock()
	if was.Year() < 2000 {
		return
	}
	select {
	case <-noted:
	case <-time.After(patience):
		t.Fatal("the loss of the events is not noted")
	}
}
