package relay_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// A message that cannot be removed from the outbox keeps no other one there, and none is
// removed before the stream's watermark has passed it. The next term publishes it once
// more, maybe behind a later one, and has the present command of its workload said again.
func TestAMessageThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.removed = func(m store.Outgoing) {
		if last := w.watermarks[bus.DispatchStream].Last; last < uint64(m.Seq) {
			t.Errorf("message %d is removed while the watermark is %d", m.Seq, last)
		}
	}
	const messages, stuck = 9, 4
	subject := func(i int) string { return event.DispatchSubject("c", workload.ID(fmt.Sprintf("w%d", i))) }
	for i := range messages {
		w.add(t, subject(i), command(workload.ID(fmt.Sprintf("w%d", i)), 1, int64(i)))
	}
	w.stuck = []int64{stuck + 1} // they count from 1
	for term := range 2 {
		_, ended := w.relay(t, 1)
		select {
		case m := <-w.found:
			for i := range messages {
				if m.Present[subject(i)] == (i == stuck) {
					t.Errorf("term %d: that %s has its last command is reported as %t", term, subject(i), i != stuck)
				}
			}
		case err := <-ended:
			t.Fatalf("term %d ended: %v", term, err)
		}
		w.mu.Lock()
		if len(w.unsent) != 1 || w.unsent[0].Seq != w.stuck[0] {
			t.Errorf("term %d: in the outbox are %v", term, w.unsent)
		}
		w.mu.Unlock()
	}
}

// A message stays in the outbox until a watermark that covers it is stored: when the
// database refuses the watermark, and when it refuses the removal of a message, too. The
// next term knows each of them, and removes it once the watermark can be stored.
func TestNothingIsRemovedBeforeItsWatermark(t *testing.T) {
	t.Parallel()
	refusal := &pgconn.PgError{Code: "XX123"}
	for name, stuck := range map[string][]int64{"the watermark is refused": nil, "and the removal of a message": {5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
				const messages = 9
				w := newWorld(t)
				w.removed = func(m store.Outgoing) {
					if last := w.watermarks[under.stream].Last; last < uint64(m.Seq) {
						t.Errorf("message %d is removed while the watermark is %d", m.Seq, last)
					}
				}
				for i := range messages {
					id := workload.ID(fmt.Sprintf("w%d", i))
					w.add(t, under.subject(id), under.payload(id))
				}
				w.watermarkErr, w.stuck = refusal, stuck
				first := w.begins(t, under)
				if published := w.stored(t, under.stream, under.filter); len(published) != messages {
					t.Fatalf("%d messages were published, want %d", len(published), messages)
				}
				first.tick(t)
				w.allKnown(t)
				second := w.begins(t, under)
				second.tick(t)
				w.watermarkErr = nil
				second.tick(t)
				if len(w.unsent) != len(stuck) {
					t.Errorf("%d messages stay in the outbox after the watermark could be stored, want %d", len(w.unsent), len(stuck))
				}
				w.allKnown(t)
			})
		})
	}
}

// begins starts a publisher of a term, step by step.
func (w *world) begins(t *testing.T, under publisherUnderTest) stepped {
	t.Helper()
	r := relay.New(w.options(1, w.bus))
	steps, err := r.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := stepped{r, steps, under.number}
	l.goesOn(t)
	return l
}

// tick lets the publisher do what it does each second, twice: one of the first two looks
// where the stream ends.
func (s stepped) tick(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := s.Tick(t.Context(), s.number); err != nil {
			t.Fatalf("the publisher does not go on: %v", err)
		}
	}
}

// allKnown checks that a term that begins now finds nothing that the ledger does not know.
func (w *world) allKnown(t *testing.T) {
	t.Helper()
	found, err := relay.FindAhead(t.Context(), w.ledger, w.bus, relay.Unrecovered{})
	if err != nil {
		t.Fatal(err)
	}
	if !found.Empty() {
		t.Errorf("the next term takes %d commands and %d events for unknown", len(found.Commands), len(found.LastEvents))
	}
}

// Commands of more than one batch may have been published and kept. Those of which an
// earlier one may come again behind the last are sent again.
func TestKeptCommandsOfTwoBatchesAreSentAgain(t *testing.T) {
	t.Parallel()
	const batch = 1000
	under := publishersUnderTest()["commands"]
	w := newWorld(t)
	subject := func(i int) string { return under.subject(workload.ID(fmt.Sprintf("w%d", i))) }
	for i := range batch + 1 {
		of := workload.ID(fmt.Sprintf("w%d", i%batch)) // the last is the second one of w0
		w.add(t, under.subject(of), under.payload(of))
	}
	w.begins(t, under)
	found := <-w.found
	if found.Present[subject(0)] || !found.Present[subject(1)] || len(found.Present) != batch-1 {
		t.Errorf("%d subjects have their last command, that of two among them: %t", len(found.Present), found.Present[subject(0)])
	}
}

// What a stream has had cannot be remembered: messages are published all the same, and
// leave the outbox when it can.
func TestAWatermarkThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.watermarkErr = &pgconn.PgError{Code: "XX123"}
	events := publishersUnderTest()["events"]
	following, err := w.bus.Follow(t.Context(), events.stream, events.filter)
	if err != nil {
		t.Fatal(err)
	}
	r, ended := w.relay(t, 1)
	for range 3 {
		want := w.handEvent(t, r)
		select {
		case d := <-following.C:
			if d.MessageID() != want.EventID {
				t.Errorf("published is %s, want %s", d.MessageID(), want.EventID)
			}
		case err := <-ended:
			t.Fatalf("the term ended: %v", err)
		}
	}
	w.mu.Lock()
	w.watermarkErr = nil
	w.mu.Unlock()
	w.drained(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watermarks[bus.EventsStream].Last == 0 {
		t.Error("the mark is not stored later")
	}
}
