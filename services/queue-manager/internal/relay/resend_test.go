package relay_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// commandsTerm begins a term whose publisher of commands does one thing at a time, and does its first
// comparison.
func (w *world) commandsTerm(t *testing.T) (*relay.Relay, relay.Steps) {
	t.Helper()
	r := relay.New(w.options(w.epoch, w.bus))
	s, err := r.Steps(t.Context())
	if err == nil {
		err = s.Begin(t.Context(), 0)
	}
	if err == nil {
		_, err = s.Next(t.Context(), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

// lastFound is what was found last, and how often something was.
func (w *world) lastFound() (found relay.CommandsFound, times int) {
	for ; len(w.found) > 0; times++ {
		found = <-w.found
	}
	return found, times
}

// makeAgain removes a stream and makes it again.
func (w *world) makeAgain(t *testing.T, stream string) {
	t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err == nil {
		err = js.DeleteStream(t.Context(), stream)
	}
	if err == nil {
		err = w.bus.EnsureStreams(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The commands of a stream that was lost are distrusted, term after term, until a leader has
// committed all of them once more.
func TestALossOfCommandsLastsUntilTheyAreCommitted(t *testing.T) {
	t.Parallel()
	refusal := &pgconn.PgError{Code: "XX123"}
	for name, c := range map[string]struct {
		refuse   error // of the note
		distrust bool  // in the next term, before anything is committed
	}{
		"the note is stored":  {nil, true},
		"the note is refused": {refusal, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, s := w.commandsTerm(t)
			m := w.add(t, event.DispatchSubject("c", "w1"), command("w1", 1, 1))
			r.Hand([]store.Outgoing{m})
			if _, err := s.Next(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if found, _ := w.lastFound(); found.Distrust || found.Committed != nil {
				t.Fatalf("a whole stream is distrusted: %+v", found)
			}
			w.makeAgain(t, bus.DispatchStream)
			w.refuseNote = c.refuse
			compare := func(r *relay.Relay, s relay.Steps) {
				t.Helper()
				r.Check()
				if _, err := s.Next(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
			}
			compare(r, s)
			if found, _ := w.lastFound(); !found.Distrust || found.Committed == nil {
				t.Fatalf("the loss is found as %+v", found)
			}
			compare(r, s) // as after a reconnection
			if found, times := w.lastFound(); found.Distrust || times != 1 {
				t.Errorf("the leader gets a second request to send them again: %+v", found)
			}
			if err := s.Tick(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			w.refuseNote = nil
			_, s = w.commandsTerm(t) // the term has ended, and nothing was committed
			found, _ := w.lastFound()
			if found.Distrust != c.distrust {
				t.Fatalf("the next term distrusts the commands: %t, want %t", found.Distrust, c.distrust)
			}
			if c.distrust {
				found.Committed()
			}
			if err := s.Tick(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			w.commandsTerm(t)
			if found, _ := w.lastFound(); found.Distrust {
				t.Error("what was committed is distrusted")
			}
		})
	}
}

// While the note cannot be stored for now, the leader gets no request; the loss is found again.
func TestALossOfCommandsIsNotedBeforeTheyAreSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, s := w.commandsTerm(t)
	w.lastFound()
	w.makeAgain(t, bus.DispatchStream)
	w.refuseNote = errors.New("the connection is gone")
	for _, step := range []struct {
		refuse error
		times  int
	}{{w.refuseNote, 0}, {nil, 1}} {
		w.refuseNote = step.refuse
		r.Check()
		if _, err := s.Next(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if found, times := w.lastFound(); times != step.times || found.Distrust != (times > 0) {
			t.Errorf("while the note fails with %v the leader gets %d requests, want %d: %+v", step.refuse, times, step.times, found)
		}
	}
}

// A recovery that cannot send all commands has this and later terms distrust them.
func TestARecoveryHasCommandsDistrusted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := relay.DistrustCommands(t.Context(), w.ledger, w.epoch); err != nil {
		t.Fatal(err)
	}
	w.commandsTerm(t)
	if found, _ := w.lastFound(); !found.Distrust || found.Committed == nil {
		t.Fatalf("commands are found as %+v", found)
	}
	_, s := w.commandsTerm(t) // some were withheld
	found, _ := w.lastFound()
	if !found.Distrust {
		t.Fatalf("the next term finds %+v", found)
	}
	found.Committed()
	if err := s.Tick(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	w.commandsTerm(t)
	if found, _ := w.lastFound(); found.Distrust {
		t.Error("what was committed is distrusted")
	}
}
