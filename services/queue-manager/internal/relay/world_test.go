package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const patience = 30 * time.Second

// ledger is an outbox in memory: what is tested here is NATS, which is real. The
// store's own tests are with Postgres.
type ledger struct {
	mu           sync.Mutex
	epoch        int64
	seq          int64
	unsent       []store.Outgoing
	undelivered  []store.Outgoing
	watermarks   map[string]store.Watermark
	history      []store.HistoryEvent
	changed      chan struct{}
	looked       func()                        // called once the epoch has been looked at
	noted        func(string, store.Watermark) // called for each watermark
	removing     func() error                  // called by Sent
	removed      func(store.Outgoing)          // called for each message that Sent removes
	stuck        []int64                       // messages that cannot be removed
	watermarkErr error                         // of SetWatermark
	refuseNote   error                         // of SetWatermark, for what is no stream
	historyErr   error                         // of HistorySince, for more than one event
}

func newLedger() *ledger {
	return &ledger{epoch: 1, watermarks: map[string]store.Watermark{}, changed: make(chan struct{}, 1)}
}

func (l *ledger) Unsent(_ context.Context, prefixes []string, after int64, limit int) (out []store.Outgoing, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.unsent {
		if m.Seq > after && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(m.Subject, p) }) && len(out) < limit {
			out = append(out, m)
		}
	}
	return out, nil
}

func (l *ledger) CheckEpochAndAddManifests(_ context.Context, epoch int64, _ []store.Outgoing) error {
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

func (l *ledger) Sent(ctx context.Context, epoch int64, seqs []int64, stream string, watermark store.Watermark) error {
	if l.removing != nil {
		if err := l.removing(); err != nil {
			return err
		}
	}
	if err := l.CheckEpochAndAddManifests(ctx, epoch, nil); err != nil {
		return err
	}
	if slices.ContainsFunc(seqs, func(seq int64) bool { return slices.Contains(l.stuck, seq) }) {
		return &pgconn.PgError{Code: "XX123"}
	}
	if !watermark.Created.IsZero() { // in one transaction
		if err := l.SetWatermark(ctx, epoch, stream, watermark); err != nil {
			return err
		}
	}
	l.remove(func(m store.Outgoing) bool {
		gone := slices.Contains(seqs, m.Seq)
		if gone && l.removed != nil {
			l.removed(m)
		}
		return gone
	})
	return nil
}

func (l *ledger) MoveToUndelivered(_ context.Context, _ int64, message store.Outgoing, _ string) error {
	l.mu.Lock()
	l.undelivered = append(l.undelivered, message)
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

func (l *ledger) Watermarks(context.Context) (map[string]store.Watermark, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watermarks := map[string]store.Watermark{}
	for name, watermark := range l.watermarks {
		watermarks[name] = watermark
	}
	return watermarks, nil
}

func (l *ledger) SetWatermark(_ context.Context, _ int64, stream string, watermark store.Watermark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watermarkErr != nil {
		return l.watermarkErr
	}
	if l.refuseNote != nil && strings.Contains(stream, "/") {
		return l.refuseNote
	}
	if l.noted != nil {
		l.noted(stream, watermark)
	}
	l.watermarks[stream] = watermark
	return nil
}

func (l *ledger) HistorySince(_ context.Context, after int64, _ time.Duration, limit int) (history []store.HistoryEvent, last int64, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.historyErr != nil && limit > 1 {
		return nil, 0, l.historyErr
	}
	for _, t := range l.history {
		if t.Seq > after {
			history, last = append(history, t), t.Seq
		}
	}
	return history, last, nil
}

// KnownMessages knows what is in the outbox, and what is in the history.
func (l *ledger) KnownMessages(_ context.Context, messages []store.MessageRef) (map[string]bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[string]bool{}
	for _, m := range messages {
		known[m.EventID] = slices.ContainsFunc(l.unsent, func(o store.Outgoing) bool { return o.EventID == m.EventID }) ||
			slices.ContainsFunc(l.history, func(t store.HistoryEvent) bool { return t.EventID == m.EventID })
	}
	return known, nil
}

// add puts a message into the outbox and returns it.
func (l *ledger) add(t *testing.T, subject string, payload event.Payload) store.Outgoing {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	id := fmt.Sprintf("queue-manager/%d/%d", l.epoch, l.seq)
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
	dir    string
	port   int
	server *natsserver.Server
	bus    *bus.Bus
	found  chan relay.CommandsFound
	failed chan relay.Undeliverable
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{ledger: newLedger(), dir: t.TempDir(), found: make(chan relay.CommandsFound, 100), failed: make(chan relay.Undeliverable, 1)}
	server, err := natsserver.Start(w.dir, -1)
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
	r, _, ended := w.start(t, w.options(epoch, server))
	return r, ended
}

// stoppable starts a relay that stop ends.
func (w *world) stoppable(t *testing.T, o relay.Options) (r *relay.Relay, stop func()) {
	t.Helper()
	r, stop, _ = w.start(t, o)
	return r, stop
}

func (w *world) start(t *testing.T, o relay.Options) (r *relay.Relay, stop func(), ended <-chan error) {
	t.Helper()
	r = relay.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { end <- r.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return r, stop, end
}

func (w *world) options(epoch int64, server relay.Bus) relay.Options {
	return relay.Options{
		Epoch: epoch, Store: w.ledger, Bus: server, Logger: zap.NewNop(), CheckEvery: time.Hour,
		CommandsFound: func(_ context.Context, m relay.CommandsFound) { w.found <- m },
		Undeliverable: func(_ context.Context, u relay.Undeliverable) { w.failed <- u },
	}
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

// handEvent puts an event of a workload's life into outbox and history, and hands it to
// the relay.
func (w *world) handEvent(t *testing.T, r *relay.Relay) store.Outgoing {
	t.Helper()
	m := w.event(t)
	r.Hand([]store.Outgoing{m})
	return m
}

// event puts an event of a workload's life into outbox and history.
func (w *world) event(t *testing.T) store.Outgoing {
	t.Helper()
	record := workload.Record{Workload: workload.Workload{ID: "w1", Queue: "q"}, Phase: workload.Running}
	m := w.add(t, event.EventsSubject("q", record.ID), &event.WorkloadChanged{Record: record})
	w.mu.Lock()
	w.history = append(w.history, store.HistoryEvent{Seq: m.Seq, EventID: m.EventID, At: time.Now(), Record: record})
	w.mu.Unlock()
	return m
}

// restart has NATS come back with the data of a directory.
func (w *world) restart(t *testing.T, dir string) {
	t.Helper()
	w.server.Stop()
	var err error
	if w.server, err = natsserver.Start(dir, w.port); err != nil {
		t.Fatal(err)
	}
}

func (w *world) lastCommand(t *testing.T, subject string) *event.GangCommand {
	t.Helper()
	last, err := w.bus.LastMessage(t.Context(), bus.DispatchStream, subject)
	if err != nil || last == nil {
		t.Fatalf("last message on %s: %v, %v", subject, last, err)
	}
	_, payload, err := last.Event()
	if err != nil {
		t.Fatal(err)
	}
	return payload.(*event.GangCommand)
}
