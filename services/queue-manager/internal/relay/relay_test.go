package relay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

func command(id workload.ID, epoch, order int64) *event.GangCommand {
	return &event.GangCommand{Workload: id, Cluster: "c", Attempt: 1, Epoch: epoch, Order: order, State: event.Absent}
}

// The old leader's relay stands still between its look at the epoch and the
// publishing; its successor says something meanwhile.
func TestALateRelayPutsNothingBehindItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, subject := range map[string]string{
		"a command": event.DispatchSubject("c", "w1"), "an event": event.EventsSubject("q", "w1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add(t, subject, command("w1", 1, 7))
			w.looked = func() {
				w.looked, w.epoch = nil, 2
				newer, err := w.bus.PublishEncoded(subject, "newer", encode(t, "newer", command("w1", 2, 1)), 0)
				if err == nil {
					err = newer.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
			_, ended := w.relay(t, 1)
			select {
			case err := <-ended:
				if !errors.Is(err, store.ErrFenced) {
					t.Errorf("the relay ended with %v, want %v", err, store.ErrFenced)
				}
			case <-time.After(patience):
				t.Fatal("the relay goes on although its epoch is over")
			}
			if got := append(w.stored(t, bus.EventsStream, "muster.events.>"), w.stored(t, bus.DispatchStream, "muster.dispatch.>")...); !slices.Equal(got, []string{"newer"}) {
				t.Errorf("NATS has %q, want only that of the successor", got)
			}
		})
	}
}

// NATS comes back without its last messages, while there are as many new ones to
// publish: put where the lost ones were, they would make the stream as long as it
// was known to be, and hide the loss from a leader that begins then.
func TestNothingNewIsPutWhereAStreamHasLostItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.relay(t, 1)
	all := []string{w.handEvent(t, r).EventID}
	w.drained(t)
	one, err := w.bus.State(t.Context(), bus.EventsStream)
	if err != nil {
		t.Fatal(err)
	}
	w.server.Stop()
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	w.restart(t, w.dir)
	for range 3 {
		all = append(all, w.handEvent(t, r).EventID)
	}
	w.drained(t)
	var found []uint64 // the end of the stream each time it is noted to have lost something
	w.mu.Lock()
	w.noted = func(stream string, watermark store.Watermark) {
		if state, err := w.bus.State(context.Background(), stream); stream == bus.EventsStream && watermark.Created.Unix() == 0 && err == nil {
			found = append(found, state.Last)
		}
	}
	w.mu.Unlock()
	w.server.Stop() // before anything new is handed over
	for range 3 {
		all = append(all, w.handEvent(t, r).EventID)
	}
	w.restart(t, old)
	w.drained(t)
	if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, all) {
		t.Errorf("the stream has %q, want %q", got, all)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(found) == 0 || found[0] != one.Last {
		t.Errorf("when the loss was noted the stream ended at %v, want %d first", found, one.Last)
	}
}

// A leader publishes and dies before it has taken anything out of the outbox.
func TestWhatNATSHasIsNotStoredTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var events, commands []string
	more := func(n int) {
		for i := range n {
			id := workload.ID(fmt.Sprintf("w%d", len(commands)))
			events = append(events, w.add(t, event.EventsSubject("q", workload.ID(fmt.Sprintf("w%d", i%3))), &event.WorkloadCancel{Workload: "w"}).EventID)
			commands = append(commands, w.add(t, event.DispatchSubject("c", id), command(id, 1, int64(i))).EventID)
		}
	}
	more(30)
	failing := errors.New("the connection is gone")
	var published sync.WaitGroup // both publishers have published
	published.Add(2)
	w.removing = func() error { published.Done(); published.Wait(); return failing }
	_, ended := w.relay(t, 1)
	select {
	case err := <-ended:
		if !errors.Is(err, failing) {
			t.Fatalf("the first relay ended with %v, want %v", err, failing)
		}
	case <-time.After(patience):
		t.Fatal("the first relay goes on although it cannot remove anything from the outbox")
	}
	w.removing = nil
	more(20)
	w.relay(t, 1)
	w.drained(t)
	if got := w.stored(t, bus.EventsStream, "muster.events.>"); !slices.Equal(got, events) {
		t.Errorf("the stream has the events %q, want %q", got, events)
	}
	if got := w.stored(t, bus.DispatchStream, "muster.dispatch.>"); !slices.Equal(got, commands) {
		t.Errorf("the stream has the commands %q, want %q", got, commands)
	}
}

// forgetful is NATS that refuses one message, and of those that are sent again loses
// the first on its way.
type forgetful struct {
	*bus.Bus
	sent atomic.Int32
}

// PublishNext implements relay.Bus.
func (f *forgetful) PublishNext(subject, id string, encoded []byte, ttl time.Duration, end bus.End) (bus.Published, error) {
	if !strings.HasPrefix(subject, "muster.events.") {
		return f.Bus.PublishNext(subject, id, encoded, ttl, end)
	}
	fails := func(err error) (bus.Published, error) {
		return bus.PublishedBy(func(context.Context) (uint64, error) { return 0, err }), nil
	}
	switch f.sent.Add(1) {
	case 1:
		return fails(bus.ErrOvertaken)
	case 3:
		return fails(errors.New("the connection is lost"))
	}
	return f.Bus.PublishNext(subject, id, encoded, ttl, end)
}

// While a relay is uncertain whether messages are there already, all of them are to
// follow the same one: the second of a subject would be stored if the first is lost.
func TestOrderOnASubjectHoldsWhileTheEndIsUncertain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subject := event.EventsSubject("q", "w1")
	first, second := w.add(t, subject, &event.WorkloadCancel{Workload: "w1"}), w.add(t, subject, &event.WorkloadCancel{Workload: "w1"})
	w.relayOver(t, 1, &forgetful{Bus: w.bus})
	w.drained(t)
	if got, want := w.stored(t, bus.EventsStream, "muster.events.>"), []string{first.EventID, second.EventID}; !slices.Equal(got, want) {
		t.Errorf("the stream has %q, want %q", got, want)
	}
}

// Commands that were overtaken in the outbox are not published.
func TestOnlyTheLastCommandOfASubjectIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.add(t, event.DispatchSubject("c", "w1"), command("w1", 1, int64(i)))
		w.add(t, event.DispatchSubject("c", "w2"), command("w2", 1, int64(i)))
	}
	before, err := w.bus.State(t.Context(), bus.DispatchStream)
	if err != nil {
		t.Fatal(err)
	}
	w.relay(t, 1)
	w.drained(t)
	state, err := w.bus.State(t.Context(), bus.DispatchStream)
	if err != nil {
		t.Fatal(err)
	}
	if published := state.Last - before.Last; published != 2 {
		t.Errorf("%d commands were published, want 2", published)
	}
	for _, id := range []workload.ID{"w1", "w2"} {
		if got := w.lastCommand(t, event.DispatchSubject("c", id)); got.Order != 4 {
			t.Errorf("the last command of %s is number %d, want 4", id, got.Order)
		}
	}
}

func TestACommandFollowsAnOlderOneThatTheRelayDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subject := event.DispatchSubject("c", "w1")
	older, err := w.bus.PublishEncoded(subject, "older", encode(t, "older", command("w1", 1, 9)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.epoch = 2
	w.add(t, subject, command("w1", 2, 1))
	w.relay(t, 2)
	w.drained(t)
	if got := w.lastCommand(t, subject); got.Epoch != 2 {
		t.Errorf("the last command is of epoch %d, want 2", got.Epoch)
	}
}

func TestARelayEndsWithItsEpoch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.epoch = 2
	w.add(t, event.EventsSubject("q", "w1"), &event.WorkloadCancel{Workload: "w1"})
	_, ended := w.relay(t, 1)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the relay ended without an error")
		}
	case <-time.After(patience):
		t.Error("the relay goes on although its epoch is over")
	}
}

// What this term has published may be in no ledger any more: the next one looks for it.
func TestARelayEndsWhenTheDatabaseWasRestoredToAnOlderState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.watermarkErr = store.ErrCommitMissing // that of the comparison at its beginning
	_, ended := w.relay(t, 1)
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrCommitMissing) {
			t.Errorf("the relay ended with %v, want %v", err, store.ErrCommitMissing)
		}
	case <-time.After(patience):
		t.Error("the relay goes on although the database was restored to an older state")
	}
}

func TestWhatIsTooLargeBecomesUndeliveredAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	huge := command("w1", 1, 1)
	huge.Manifest = []byte(`"` + strings.Repeat("x", int(w.bus.MaxEvent())) + `"`)
	w.add(t, event.DispatchSubject("c", "w1"), huge)
	w.add(t, event.DispatchSubject("c", "w2"), command("w2", 1, 2))
	w.relay(t, 1)
	w.drained(t)
	if len(w.undelivered) != 1 {
		t.Fatalf("%d messages are undelivered, want 1", len(w.undelivered))
	}
	if u := <-w.failed; u.Workload != "w1" {
		t.Errorf("undeliverable is %q, want w1", u.Workload)
	}
	w.lastCommand(t, event.DispatchSubject("c", "w2"))
}

// More is committed than a publisher has room for: the rest comes from the outbox, in
// order, and the committer has not waited.
func TestWhatAPublisherHasNoRoomForComesFromTheOutbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := relay.New(relay.Options{
		Epoch: 1, Store: w.ledger, Bus: w.bus, Logger: zap.NewNop(), CheckEvery: time.Hour,
		CommandsFound: func(context.Context, relay.CommandsFound) {}, Undeliverable: func(context.Context, relay.Undeliverable) {},
	})
	const commits = 500
	for i := range commits {
		r.Hand([]store.Outgoing{w.add(t, event.DispatchSubject("c", "w1"), command("w1", 1, int64(i)))})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = r.Run(ctx) }()
	w.drained(t)
	if got := w.lastCommand(t, event.DispatchSubject("c", "w1")); got.Order != commits-1 {
		t.Errorf("the last command is number %d, want %d", got.Order, commits-1)
	}
}
