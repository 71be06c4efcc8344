package relay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// A replaced leader's message of time that Postgres has lost arrives when the next term
// has compared the streams. The term ends, whatever it does next, and does not move the
// watermark past the message; the term after it finds the message and goes on.
func TestAMessageOfLostTimeThatArrivesLateIsFound(t *testing.T) {
	t.Parallel()
	const lost = "queue-manager/1/1003"
	for name, finds := range map[string]func(*testing.T, *aheadWorld, stepped) error{
		"as the publisher begins": func(t *testing.T, w *aheadWorld, l stepped) error {
			w.late(t, lost)
			return l.Begin(t.Context(), l.number)
		},
		"by a comparison": func(t *testing.T, w *aheadWorld, l stepped) error {
			l.goesOn(t)
			w.late(t, lost)
			l.Check()
			_, err := l.Next(t.Context(), l.number)
			return err
		},
		"by a tick": func(t *testing.T, w *aheadWorld, l stepped) error {
			l.goesOn(t)
			for range 5 {
				if err := l.Tick(t.Context(), l.number); err != nil {
					t.Fatal(err)
				}
			}
			w.late(t, lost)
			for range 3 { // the looks are ever rarer
				if err := l.Tick(t.Context(), l.number); err != nil {
					return err
				}
			}
			return nil
		},
		"before the first message of the term": func(t *testing.T, w *aheadWorld, l stepped) error {
			l.goesOn(t)
			w.late(t, lost)
			w.handOwn(t, l)
			_, err := l.Next(t.Context(), l.number)
			return err
		},
		"behind one that the ledger knows": func(t *testing.T, w *aheadWorld, l stepped) error {
			w.epoch = 1
			known := w.add(t, w.subject("known"), w.payload("known"))
			w.epoch = 2
			l.goesOn(t) // and has published it
			if _, err := w.arrive(t, lost, bus.End{Sequence: w.ends[w.stream].Last + 1, ID: known.EventID}); err != nil {
				t.Fatal(err)
			}
			w.handOwn(t, l)
			_, err := l.Next(t.Context(), l.number)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
				w := newAheadWorld(t, under)
				if err := finds(t, w, w.begins(t, w.bus)); !errors.Is(err, store.ErrCommitMissing) {
					t.Fatalf("the publisher returned %v, want %v", err, store.ErrCommitMissing)
				}
				stored := w.stored(t, w.stream, w.filter)
				if stored[len(stored)-1] != lost {
					t.Errorf("the stream has %q, want nothing behind %s", stored, lost)
				}
				w.findsAndGoesOn(t, "w-1003")
			})
		})
	}
}

// findsAndGoesOn has the next term find the events of a workload, and publish.
func (w *aheadWorld) findsAndGoesOn(t *testing.T, lost workload.ID) {
	t.Helper()
	found := w.compare(t)
	if !finds(found, lost) {
		t.Errorf("the next term finds nothing of %s: %+v", lost, found)
	}
	w.epoch++
	l := w.begins(t, w.bus)
	l.goesOn(t)
	m := w.handOwn(t, l)
	l.next(t)
	if stored := w.stored(t, w.stream, w.filter); stored[len(stored)-1] != m.EventID {
		t.Errorf("the stream has %q, want %s at the end", stored, m.EventID)
	}
}

// answering is a server of several that answers that it has a message, whatever the message
// is to follow.
type answering struct {
	*bus.Bus
	sequences map[string]uint64
}

// PublishNext implements relay.Bus.
func (a answering) PublishNext(subject, id string, encoded []byte, ttl time.Duration, end bus.End) (bus.Published, error) {
	if sequence, has := a.sequences[id]; has {
		return bus.PublishedBy(func(context.Context) (uint64, error) { return sequence, nil }), nil
	}
	return a.Bus.PublishNext(subject, id, encoded, ttl, end)
}

// What is stored between the end that is known and a message that is there already is
// compared, too.
func TestAMessageOfLostTimeBeforeOneThatIsKnownIsFound(t *testing.T) {
	t.Parallel()
	forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
		w := newAheadWorld(t, under)
		server := answering{w.bus, map[string]uint64{}}
		l := w.begins(t, server)
		l.goesOn(t)
		w.late(t, "queue-manager/1/1003")
		m := w.add(t, w.subject("own"), w.payload("own"))
		sequence, err := w.arrive(t, m.EventID, bus.End{Sequence: w.ends[w.stream].Last + 1})
		if err != nil {
			t.Fatal(err)
		}
		server.sequences[m.EventID] = sequence
		l.Hand([]store.Outgoing{m})
		if _, err := l.Next(t.Context(), l.number); !errors.Is(err, store.ErrCommitMissing) {
			t.Errorf("the publisher returned %v, want %v", err, store.ErrCommitMissing)
		}
	})
}

// A replaced leader that wakes up finds what its successor has published and removed from
// the outbox: that is no message of lost time.
func TestAMessageOfASuccessorIsNotOfLostTime(t *testing.T) {
	t.Parallel()
	forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
		w := newAheadWorld(t, under)
		l := w.begins(t, w.bus)
		l.goesOn(t)
		w.late(t, "queue-manager/3/0001")
		l.Check()
		if _, err := l.Next(t.Context(), l.number); !errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrCommitMissing) {
			t.Errorf("the publisher returned %v, want %v", err, store.ErrFenced)
		}
	})
}

// What arrives late and is known, or is not of queue-manager, ends no term.
func TestWhatIsKnownMayArriveLate(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]func(*testing.T, *aheadWorld){
		"in the outbox": func(t *testing.T, w *aheadWorld) {
			w.epoch = 1
			m := w.add(t, w.subject("known"), w.payload("known"))
			w.epoch = 2
			if _, err := w.arrive(t, m.EventID, bus.End{Sequence: w.ends[w.stream].Last}); err != nil {
				t.Fatal(err)
			}
		},
		"in the history": func(t *testing.T, w *aheadWorld) {
			w.history = append(w.history, store.HistoryEvent{Seq: 1, EventID: "queue-manager/1/1003"})
			w.late(t, "queue-manager/1/1003")
		},
		"of another service": func(t *testing.T, w *aheadWorld) { w.late(t, "intake/1003") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
				w := newAheadWorld(t, under)
				arrives(t, w)
				l := w.begins(t, w.bus)
				l.goesOn(t)
				m := w.handOwn(t, l)
				l.next(t)
				w.drained(t)
				stored := w.stored(t, w.stream, w.filter)
				if len(stored) != 4 || stored[3] != m.EventID {
					t.Errorf("the stream has %q, want four messages, the last of them %s", stored, m.EventID)
				}
			})
		})
	}
}

// As soon as a term has stored a message, NATS refuses what was to follow an earlier one.
func TestNothingArrivesLateBehindAMessageOfTheTerm(t *testing.T) {
	t.Parallel()
	forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
		w := newAheadWorld(t, under)
		l := w.begins(t, w.bus)
		l.goesOn(t)
		w.handOwn(t, l)
		l.next(t)
		if _, err := w.arrive(t, "queue-manager/1/1003", bus.End{Sequence: w.ends[w.stream].Last}); !errors.Is(err, bus.ErrOvertaken) {
			t.Errorf("the late message gets %v, want %v", err, bus.ErrOvertaken)
		}
	})
}

// watched is NATS that a test looks at.
type watched struct {
	*bus.Bus
	read   int             // how often a stream was read
	stated func(of string) // called when a stream's state is known
}

// State implements relay.Streams.
func (w *watched) State(ctx context.Context, stream string) (bus.StreamState, error) {
	state, err := w.Bus.State(ctx, stream)
	if w.stated != nil {
		w.stated(stream)
	}
	return state, err
}

// Since implements relay.Streams.
func (w *watched) Since(ctx context.Context, stream, filter string, from bus.From, each func(bus.Delivery) error) error {
	w.read++
	return w.Bus.Since(ctx, stream, filter, from, each)
}

// What arrives while a term compares the streams, and is found, is not compared again.
func TestWhatIsFoundIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
		w := newAheadWorld(t, under)
		server := &watched{Bus: w.bus}
		server.stated = func(of string) {
			if of == w.stream {
				w.late(t, "queue-manager/1/1003")
			}
		}
		found := w.compareWith(t, server)
		if !finds(found, "w-1003") {
			t.Fatalf("what arrives meanwhile is not found: %+v", found)
		}
		l := w.begins(t, w.bus)
		l.goesOn(t)
	})
}

// Others' messages in a stream are read once, and not at all when a message of the term
// is stored.
func TestAStreamIsNotReadWithoutNeed(t *testing.T) {
	t.Parallel()
	forEachPublisher(t, func(t *testing.T, under publisherUnderTest) {
		w := newAheadWorld(t, under)
		server := &watched{Bus: w.bus}
		l := w.begins(t, server)
		l.goesOn(t)
		w.late(t, "intake/1003")
		for range 2 {
			l.Check()
			l.next(t)
		}
		if server.read != 1 {
			t.Errorf("the stream was read %d times for one message, want once", server.read)
		}
		w.handOwn(t, l)
		l.next(t)
		if _, err := w.arrive(t, "intake/1004", bus.End{Sequence: w.ends[w.stream].Last + 2}); err != nil {
			t.Fatal(err)
		}
		l.Check()
		l.next(t)
		if server.read != 1 {
			t.Errorf("the stream was read %d times when the term had stored a message, want no more", server.read)
		}
	})
}
