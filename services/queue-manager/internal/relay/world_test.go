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
	mu       sync.Mutex
	epoch    int64
	seq      int64
	unsent   []store.Outgoing
	aside    []store.Outgoing
	marks    map[string]store.Mark
	told     []store.Told
	changed  chan struct{}
	looked   func()                   // called once the epoch has been looked at
	noted    func(string, store.Mark) // called for each mark
	removing func() error             // called by Sent
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
	if l.looked != nil {
		l.looked()
	}
	return nil
}

func (l *ledger) Sent(ctx context.Context, epoch int64, seqs []int64, stream string, mark store.Mark) error {
	if l.removing != nil {
		if err := l.removing(); err != nil {
			return err
		}
	}
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
	if l.noted != nil {
		l.noted(stream, mark)
	}
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
	return w.relayOver(t, epoch, w.bus)
}

func (w *world) relayOver(t *testing.T, epoch int64, server relay.Bus) (*relay.Relay, <-chan error) {
	t.Helper()
	r := relay.New(relay.Options{
		Epoch: epoch, Ledger: w.ledger, Bus: server, Logger: zap.NewNop(), CheckEvery: time.Hour,
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

// stored returns the ids of the messages that a stream has.
func (w *world) stored(t *testing.T, stream, filter string) (ids []string) {
	t.Helper()
	following, err := w.bus.Replay(t.Context(), stream, filter)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(patience)
	for caughtUp := false; !caughtUp; {
		select {
		case d := <-following.C:
			ids = append(ids, d.MessageID())
		case <-following.CaughtUp:
			caughtUp = len(following.C) == 0
		case <-deadline:
			t.Fatalf("the end of stream %s is not reached", stream)
		}
	}
	return ids
}

// tell puts an event of a workload's life into outbox and history, and hands it to
// the relay.
func (w *world) tell(t *testing.T, r *relay.Relay) store.Outgoing {
	t.Helper()
	record := workload.Record{Workload: workload.Workload{ID: "w1", Queue: "q"}, Phase: workload.Running}
	m := w.add(t, bus.EventsSubject("q", record.ID), &event.WorkloadChanged{Record: record})
	w.mu.Lock()
	w.told = append(w.told, store.Told{Seq: m.Seq, EventID: m.EventID, At: time.Now(), Record: record})
	w.mu.Unlock()
	r.Hand([]store.Outgoing{m})
	return m
}

// restart has NATS come back with the data of a directory.
func (w *world) restart(t *testing.T, dir string) {
	t.Helper()
	w.server.Stop()
	var err error
	if w.server, err = localnats.Start(dir, w.port); err != nil {
		t.Fatal(err)
	}
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
