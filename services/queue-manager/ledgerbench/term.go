package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// term is a leader without NATS.
type term struct {
	store  *store.Store
	led    *store.Leadership
	state  *state.State
	loaded time.Duration
	heap   uint64
	seq    uint64
	names  int
	stop   context.CancelFunc
	// recorder is nil when decisions are not recorded.
	recorder *decisionlog.Recorder
}

func openTerm(ctx context.Context, url string, record bool, policy quota.Config) (_ *term, err error) {
	debug.FreeOSMemory()
	before := heapInUse()
	t := &term{}
	if record {
		t.recorder = &decisionlog.Recorder{}
	}
	if t.store, err = store.Open(ctx, url, store.DefaultTimeouts()); err != nil {
		return nil, err
	}
	if t.led, err = t.store.Lead(ctx, "bench", time.Minute, func() {}); err != nil {
		return nil, err
	}
	err = t.store.SetQueues(ctx, t.led.Epoch, []state.Queue{
		{Name: "waiting", Namespaces: []string{"waiting"}, Strategy: quota.BestEffortFIFO},
		{Name: "fits", Namespaces: []string{"fits"}, Strategy: quota.BestEffortFIFO},
	}, policy)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if t.state, err = t.store.LoadState(ctx, t.led.Epoch, 1<<20); err != nil {
		return nil, err
	}
	t.loaded = time.Since(began)
	t.heap = heapInUse() - min(before, heapInUse())
	keeping, stop := context.WithCancel(ctx)
	t.stop = stop
	go func() { _ = t.led.Keep(keeping) }()
	return t, t.commit(ctx) // the first decision looks at all that wait
}

func (t *term) close() {
	t.stop()
	t.led.End()
	t.store.Close()
}

func (t *term) report(waiting int) {
	fmt.Printf("  %d waiting: read in %s, %d MB of live data in memory\n", waiting, t.loaded.Round(time.Millisecond), megabytes(t.heap))
}

// commit decides and commits, one after the other.
func (t *term) commit(ctx context.Context) error {
	write, _, err := t.decide(time.Now())
	if err != nil || write == nil {
		return err
	}
	_, err = write(ctx)
	return err
}

// decide makes the transaction of what has been decided; nil when there is
// nothing to write.
func (t *term) decide(at time.Time) (store.Transaction, state.Changes, error) {
	t.state.Decide(at)
	changes := t.state.Flush()
	if changes.Empty() {
		return nil, changes, nil
	}
	var record store.Record
	if t.recorder != nil {
		t.recorder.Note(decisionlog.Input{Kind: decisionlog.Decide, At: at})
		record = store.Record{Version: t.state.Version(), At: at}
		record.Number, record.Inputs = t.recorder.Flush()
	}
	write, err := t.store.Prepare(changes, record)
	return write, changes, err
}

// apply has the state take a message in, and notes it as the service does: it has
// the message as it came.
func (t *term) apply(payload event.Payload, at time.Time) error {
	envelope, err := event.New("bench", "bench", at, payload)
	if err != nil {
		return err
	}
	if t.recorder != nil {
		encoded, err := envelope.Encode()
		if err != nil {
			return err
		}
		t.recorder.Note(decisionlog.Input{Kind: decisionlog.Event, At: at, Message: encoded})
	}
	decisionlog.ApplyMessage(t.state, envelope, payload, decisionlog.Input{At: at})
	return nil
}
