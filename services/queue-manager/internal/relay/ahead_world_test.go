package relay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// publisherUnderTest is a stream with what is put there.
type publisherUnderTest struct {
	number         int // of the publisher
	stream, filter string
	subject        func(workload.ID) string
	payload        func(workload.ID) event.Payload
}

func publishersUnderTest() map[string]publisherUnderTest {
	return map[string]publisherUnderTest{
		"commands": {0, bus.DispatchStream, event.DispatchFilter("*"), func(id workload.ID) string { return event.DispatchSubject("c", id) },
			func(id workload.ID) event.Payload { return command(id, 1, 1) }},
		"events": {1, bus.EventsStream, event.EventsFilter(), func(id workload.ID) string { return event.EventsSubject("q", id) },
			func(id workload.ID) event.Payload {
				return &event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}, Phase: workload.Queued}}
			}},
	}
}

// aheadWorld is the time when a term has compared the streams: the ledger was restored to an
// older state, and its leader of epoch 1 has published two messages, which are in the
// streams and have been found. Epoch 2 begins.
type aheadWorld struct {
	*world
	publisherUnderTest
	ends map[string]store.Watermark
}

func newAheadWorld(t *testing.T, under publisherUnderTest) *aheadWorld {
	t.Helper()
	w := &aheadWorld{newWorld(t), under, nil}
	empty, err := w.bus.State(t.Context(), under.stream)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"queue-manager/1/1001", "queue-manager/1/1002"} {
		if _, err := w.arrive(t, id, bus.End{Sequence: empty.Last + uint64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	w.compare(t)
	w.epoch = 2
	return w
}

// compare is what a term does first.
func (w *aheadWorld) compare(t *testing.T) relay.Found {
	t.Helper()
	return w.compareWith(t, w.bus)
}

func (w *aheadWorld) compareWith(t *testing.T, streams relay.Streams) relay.Found {
	t.Helper()
	found, err := relay.FindAhead(t.Context(), w.ledger, streams, relay.Unrecovered{})
	if err != nil {
		t.Fatal(err)
	}
	w.ends = found.Ends
	return found
}

// finds reports whether a workload is among what was found.
func finds(found relay.Found, of workload.ID) bool {
	return slices.ContainsFunc(found.Commands, func(c *event.GangCommand) bool { return c.Workload == of }) ||
		slices.ContainsFunc(found.LastEvents, func(f relay.LastEvent) bool { return f.ID == of })
}

// arrive has NATS take a message, of a workload named by its id, that is to follow the
// given end.
func (w *aheadWorld) arrive(t *testing.T, id string, end bus.End) (uint64, error) {
	t.Helper()
	of := workload.ID("w-" + id[len(id)-4:])
	published, err := w.bus.PublishNext(w.subject(of), id, encode(t, id, w.payload(of)), 0, end)
	if err != nil {
		t.Fatal(err)
	}
	return published.Stored(t.Context())
}

// late has a message of epoch 1 arrive that was to follow what the term has found.
func (w *aheadWorld) late(t *testing.T, id string) {
	t.Helper()
	if _, err := w.arrive(t, id, bus.End{Sequence: w.ends[w.stream].Last}); err != nil {
		t.Fatalf("message %s does not arrive: %v", id, err)
	}
}

// stepped is a publisher of a term's relay, step by step.
type stepped struct {
	*relay.Relay
	relay.Steps
	number int
}

func (w *aheadWorld) begins(t *testing.T, server relay.Bus) stepped {
	t.Helper()
	o := w.options(w.epoch, server)
	o.Compared, o.Pause = w.ends, func(context.Context, time.Duration) error { return nil }
	r := relay.New(o)
	steps, err := r.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stepped{r, steps, w.number}
}

// goesOn begins, and does the comparison that is due then.
func (s stepped) goesOn(t *testing.T) {
	t.Helper()
	if err := s.Begin(t.Context(), s.number); err != nil {
		t.Fatalf("the publisher does not begin: %v", err)
	}
	s.next(t)
}

func (s stepped) next(t *testing.T) {
	t.Helper()
	if _, err := s.Next(t.Context(), s.number); err != nil {
		t.Fatalf("the publisher does not go on: %v", err)
	}
}

// handOwn hands the publisher a message of its term.
func (w *aheadWorld) handOwn(t *testing.T, l stepped) store.Outgoing {
	t.Helper()
	m := w.add(t, w.subject("own"), w.payload("own"))
	l.Hand([]store.Outgoing{m})
	return m
}

func forEachPublisher(t *testing.T, test func(*testing.T, publisherUnderTest)) {
	for name, under := range publishersUnderTest() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, under)
		})
	}
}
