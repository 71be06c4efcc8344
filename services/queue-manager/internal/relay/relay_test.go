package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/localnats"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const patience = 30 * time.Second

// ledger is an outbox in memory: what is tested here is NATS, which is real. The
// store's own tests are with Postgres.
type ledger struct {
	mu      sync.Mutex
	epoch   int64
	seq     int64
	unsent  []store.Outgoing
	aside   []store.Outgoing
	marks   map[string]store.Mark
	told    []store.Told
	changed chan struct{}
}

func newLedger() *ledger {
	return &ledger{epoch: 1, marks: map[string]store.Mark{}, changed: make(chan struct{}, 1)}
}

func (l *ledger) Unsent(_ context.Context, prefix string, after int64, limit int) (out []store.Outgoing, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.unsent {
		if m.Seq > after && strings.HasPrefix(m.Subject, prefix) && len(out) < limit {
			out = append(out, m)
		}
	}
	return out, nil
}

func (l *ledger) Complete(_ context.Context, epoch int64, _ []store.Outgoing) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch != l.epoch {
		return store.ErrFenced
	}
	return nil
}

func (l *ledger) Sent(ctx context.Context, epoch int64, seqs []int64, stream string, mark store.Mark) error {
	if err := l.Complete(ctx, epoch, nil); err != nil {
		return err
	}
	l.remove(func(m store.Outgoing) bool { return slices.Contains(seqs, m.Seq) })
	return l.SetMark(ctx, epoch, stream, mark)
}

func (l *ledger) SetAside(_ context.Context, _ int64, message store.Outgoing, _ string) error {
	l.mu.Lock()
	l.aside = append(l.aside, message)
	l.mu.Unlock()
	l.remove(func(m store.Outgoing) bool { return m.Seq == message.Seq })
	return nil
}

func (l *ledger) remove(gone func(store.Outgoing) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsent = slices.DeleteFunc(l.unsent, gone)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *ledger) Marks(context.Context) (map[string]store.Mark, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := map[string]store.Mark{}
	for name, mark := range l.marks {
		marks[name] = mark
	}
	return marks, nil
}

func (l *ledger) SetMark(_ context.Context, _ int64, stream string, mark store.Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks[stream] = mark
	return nil
}

func (l *ledger) ToldSince(_ context.Context, after int64, _ time.Duration, _ int) (told []store.Told, last int64, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.told {
		if t.Seq > after {
			told, last = append(told, t), t.Seq
		}
	}
	return told, last, nil
}

// add puts a message into the outbox and returns it.
func (l *ledger) add(t *testing.T, subject string, payload event.Payload) store.Outgoing {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	id := fmt.Sprintf("test/%d/%d", l.epoch, l.seq)
	m := store.Outgoing{Seq: l.seq, EventID: id, Subject: subject, Message: encode(t, id, payload)}
	l.unsent = append(l.unsent, m)
	return m
}

func encode(t *testing.T, id string, payload event.Payload) []byte {
	t.Helper()
	envelope, err := event.New(id, "test", time.Now(), payload)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := envelope.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// drained waits until the outbox is empty.
func (l *ledger) drained(t *testing.T) {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		left := len(l.unsent)
		l.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-l.changed:
		case <-deadline:
			t.Fatalf("%d messages are still in the outbox", left)
		}
	}
}

type world struct {
	*ledger
	dir     string
	port    int
	server  *localnats.Server
	bus     *bus.Bus
	missing chan relay.Missing
	failed  chan relay.Undeliverable
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{ledger: newLedger(), dir: t.TempDir(), missing: make(chan relay.Missing, 100), failed: make(chan relay.Undeliverable, 1)}
	server, err := localnats.Start(w.dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	w.server = server
	t.Cleanup(func() { w.server.Stop() })
	if w.bus, err = bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.bus.Close)
	if err := w.bus.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(server.URL()[strings.LastIndex(server.URL(), ":")+1:], "%d", &w.port); err != nil {
		t.Fatal(err)
	}
	return w
}

// relay starts a relay of the given epoch; the channel gets how it ended.
func (w *world) relay(t *testing.T, epoch int64) (*relay.Relay, <-chan error) {
	t.Helper()
	r := relay.New(relay.Options{
		Epoch: epoch, Ledger: w.ledger, Bus: w.bus, Logger: zap.NewNop(), CheckEvery: time.Hour,
		Missing:       func(_ context.Context, m relay.Missing) { w.missing <- m },
		Undeliverable: func(_ context.Context, u relay.Undeliverable) { w.failed <- u },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { ended <- r.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return r, ended
}

func (w *world) lastCommand(t *testing.T, subject string) *event.GangDesired {
	t.Helper()
	last, err := w.bus.LastMessage(t.Context(), bus.DispatchStream, subject)
	if err != nil || last == nil {
		t.Fatalf("last message on %s: %v, %v", subject, last, err)
	}
	_, payload, err := last.Event()
	if err != nil {
		t.Fatal(err)
	}
	return payload.(*event.GangDesired)
}

func command(id workload.ID, epoch, order int64) *event.GangDesired {
	return &event.GangDesired{Workload: id, Cluster: "c", Attempt: 1, Epoch: epoch, Order: order, State: event.Absent}
}

// The old leader's relay stood still with a command in hand; its successor has
// said something newer.
func TestALateRelayPutsNoOldCommandLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subject := bus.DispatchSubject("c", "w1")
	newer, err := w.bus.PublishEncoded(subject, "newer", encode(t, "newer", command("w1", 2, 1)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := newer.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.add(t, subject, command("w1", 1, 7)) // its look at the epoch came before the change
	w.add(t, subject, command("w1", 1, 8)) // it has learnt what is last from the other
	w.relay(t, 1)
	w.drained(t)
	if got := w.lastCommand(t, subject); got.Epoch != 2 {
		t.Errorf("the last command is of epoch %d, want 2", got.Epoch)
	}
}

func TestACommandFollowsAnOlderOneThatTheRelayDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subject := bus.DispatchSubject("c", "w1")
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
	w.add(t, bus.EventsSubject("q", "w1"), &event.WorkloadCancel{Workload: "w1"})
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

// NATS dies and comes back with its data while messages are on their way; the
// order on each subject is kept, repetitions aside.
func TestOrderOnASubjectHoldsOverARestartOfNATS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const subjects, each = 5, 60
	var all []store.Outgoing
	for i := range each {
		for s := range subjects {
			id := workload.ID(fmt.Sprintf("w%d", s))
			all = append(all, w.add(t, bus.EventsSubject("q", id), &event.WorkloadCancel{Workload: id, Why: fmt.Sprint(i)}),
				w.add(t, bus.DispatchSubject("c", id), command(id, 1, int64(i))))
		}
	}
	r, _ := w.relay(t, 1)
	for i := 0; i < len(all); i += 10 {
		r.Hand(all[i : i+10])
		if i == len(all)/2 {
			w.server.Stop()
			var err error
			if w.server, err = localnats.Start(w.dir, w.port); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.drained(t)
	last := map[string]int{}
	following, err := w.bus.Replay(t.Context(), bus.EventsStream, "muster.events.>")
	if err != nil {
		t.Fatal(err)
	}
	for len(last) < subjects || slices.Min(values(last)) < each-1 {
		select {
		case d := <-following.C:
			_, payload, err := d.Event()
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if _, err := fmt.Sscan(payload.(*event.WorkloadCancel).Why, &n); err != nil {
				t.Fatal(err)
			}
			if before, known := last[d.Subject]; known && n > before+1 || !known && n != 0 {
				t.Fatalf("on %s came %d after %d", d.Subject, n, before)
			}
			last[d.Subject] = max(last[d.Subject], n)
		case <-time.After(patience):
			t.Fatalf("seen up to %v", last)
		}
	}
	for s := range subjects {
		if got := w.lastCommand(t, bus.DispatchSubject("c", workload.ID(fmt.Sprintf("w%d", s)))); got.Order != each-1 {
			t.Errorf("the last command of w%d is number %d, want %d", s, got.Order, each-1)
		}
	}
}

func values(m map[string]int) []int {
	var all []int
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// NATS comes back without its data: the events of the history are told anew, and
// the leader hears that commands are missing.
func TestALostStreamIsFoundAndFilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.relay(t, 1)
	<-w.missing // of the start
	id := workload.ID("w1")
	record := workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}, Phase: workload.Running}
	for i := range 3 {
		m := w.add(t, bus.EventsSubject("q", id), &event.WorkloadChanged{Record: record})
		w.mu.Lock()
		w.told = append(w.told, store.Told{Seq: int64(i + 1), EventID: m.EventID, At: time.Now(), Record: record})
		w.mu.Unlock()
		r.Hand([]store.Outgoing{m})
		w.drained(t)
	}
	c := w.add(t, bus.DispatchSubject("c", id), command(id, 1, 1))
	r.Hand([]store.Outgoing{c})
	w.drained(t)
	w.server.Stop()
	var err error
	if w.server, err = localnats.Start(t.TempDir(), w.port); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(patience)
	for {
		select {
		case m := <-w.missing:
			if !m.All {
				continue
			}
		case <-deadline:
			t.Fatal("the loss of the commands was not found")
		}
		break
	}
	following, err := w.bus.Replay(t.Context(), bus.EventsStream, "muster.events.>")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		select {
		case d := <-following.C:
			if want := w.told[i].EventID; d.MessageID() != want {
				t.Errorf("event %d is %q, want %q", i, d.MessageID(), want)
			}
		case <-deadline:
			t.Fatalf("%d of 3 events came back", i)
		}
	}
}

func TestWhatIsTooLargeIsSetAsideAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	huge := command("w1", 1, 1)
	huge.Manifest = []byte(`"` + strings.Repeat("x", int(w.bus.MaxEvent())) + `"`)
	w.add(t, bus.DispatchSubject("c", "w1"), huge)
	w.add(t, bus.DispatchSubject("c", "w2"), command("w2", 1, 2))
	w.relay(t, 1)
	w.drained(t)
	if len(w.aside) != 1 {
		t.Fatalf("%d messages are set aside, want 1", len(w.aside))
	}
	if u := <-w.failed; u.Workload != "w1" {
		t.Errorf("undeliverable is %q, want w1", u.Workload)
	}
	w.lastCommand(t, bus.DispatchSubject("c", "w2"))
}

// More is committed than a lane has room for: the rest comes from the outbox, in
// order, and the committer has not waited.
func TestWhatALaneHasNoRoomForComesFromTheOutbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := relay.New(relay.Options{
		Epoch: 1, Ledger: w.ledger, Bus: w.bus, Logger: zap.NewNop(), CheckEvery: time.Hour,
		Missing: func(context.Context, relay.Missing) {}, Undeliverable: func(context.Context, relay.Undeliverable) {},
	})
	const commits = 500
	for i := range commits {
		r.Hand([]store.Outgoing{w.add(t, bus.DispatchSubject("c", "w1"), command("w1", 1, int64(i)))})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = r.Run(ctx) }()
	w.drained(t)
	if got := w.lastCommand(t, bus.DispatchSubject("c", "w1")); got.Order != commits-1 {
		t.Errorf("the last command is number %d, want %d", got.Order, commits-1)
	}
}
