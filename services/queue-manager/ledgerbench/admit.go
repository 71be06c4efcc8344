package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// term is a leader without NATS.
type term struct {
	store  *store.Store
	led    *store.Leadership
	book   *book.Book
	loaded time.Duration
	heap   uint64
	seq    uint64
	names  int
	stop   context.CancelFunc
	// journal is nil when decisions are not recorded.
	journal *journal.Recorder
}

func openTerm(ctx context.Context, url string, record bool) (_ *term, err error) {
	debug.FreeOSMemory()
	before := heapInUse()
	t := &term{}
	if record {
		t.journal = &journal.Recorder{}
	}
	if t.store, err = store.Open(ctx, url, store.DefaultTimeouts()); err != nil {
		return nil, err
	}
	if t.led, err = t.store.Lead(ctx, "bench", time.Minute, func() {}); err != nil {
		return nil, err
	}
	err = t.store.SetQueues(ctx, t.led.Epoch, []book.Queue{
		{Name: "waiting", Namespaces: []string{"waiting"}, Strategy: quota.BestEffortFIFO},
		{Name: "fits", Namespaces: []string{"fits"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if t.book, err = t.store.LoadBook(ctx, t.led.Epoch, 1<<20); err != nil {
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
	prepared, _, err := t.decide(time.Now())
	if err != nil || prepared == nil {
		return err
	}
	_, err = t.store.Write(ctx, prepared)
	return err
}

// decide makes the transaction of what has been decided; nil when there is
// nothing to write.
func (t *term) decide(at time.Time) (*store.Prepared, book.Changes, error) {
	t.book.Decide(at)
	changes := t.book.Take()
	if changes.Empty() {
		return nil, changes, nil
	}
	var record store.Record
	if t.journal != nil {
		t.journal.Note(journal.Input{Kind: journal.Decide, At: at})
		record = store.Record{Version: t.book.Version(), At: at}
		record.Number, record.Inputs = t.journal.Take()
	}
	prepared, err := t.store.Prepare(changes, record)
	return prepared, changes, err
}

// take has the book take a message in, and notes it as the service does: it has
// the message as it came.
func (t *term) take(payload event.Payload, at time.Time) error {
	envelope, err := event.New("bench", "bench", at, payload)
	if err != nil {
		return err
	}
	if t.journal != nil {
		encoded, err := envelope.Encode()
		if err != nil {
			return err
		}
		t.journal.Note(journal.Input{Kind: journal.Event, At: at, Message: encoded})
	}
	journal.Take(t.book, envelope, payload, nil, at)
	return nil
}

const manifestBytes = 2000

// submitBatch is how many gangs are stored at once before the measurement.
const submitBatch = 500

// admit has gangs wait, which is not measured, and then a node arrive for each
// transaction, with room for exactly its gangs.
func (t *term) admit(ctx context.Context, each, gangs int) error {
	requests := resource.List{"cpu": 1000, "memory": 1 << 30, "pods": 1}
	manifest := json.RawMessage(`{"kind":"RayCluster","spec":"` + string(make0(manifestBytes)) + `"}`)
	began := time.Now()
	for at := 0; at < gangs; at += submitBatch {
		for range min(submitBatch, gangs-at) {
			t.names++
			name := fmt.Sprintf("gang-%d-%d", t.led.Epoch, t.names)
			err := t.take(&event.WorkloadSubmitted{Manifest: manifest, Workload: workload.Workload{
				ID: event.WorkloadID("bench", name), Queue: "fits", Kind: "RayCluster", Name: name, Digest: name,
				PodSets: []workload.PodSet{
					{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: requests}},
					{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: requests}},
				},
			}}, time.Now())
			if err != nil {
				return err
			}
		}
		if err := t.commit(ctx); err != nil {
			return err
		}
	}
	accepted := time.Since(began)
	room := requests.Times(int64(2 * each))
	var times samples
	pending := make(chan *store.Prepared, 1)
	failed := make(chan error, 1)
	starts := make(chan time.Time, 16)
	go func() {
		defer close(failed)
		for prepared := range pending {
			if _, err := t.store.Write(ctx, prepared); err != nil {
				failed <- err
				for range pending {
				}
				return
			}
			times = append(times, time.Since(<-starts))
		}
	}()
	began = time.Now()
	admitted := 0
	for admitted < gangs {
		at := time.Now()
		t.seq++
		err := t.take(&event.NodeObserved{
			Version: event.Version{Session: t.led.Epoch, Seq: t.seq},
			Node:    capacity.Node{Cluster: "bench", Name: fmt.Sprintf("n-%d-%d", t.led.Epoch, t.seq), Ready: true, Allocatable: room},
		}, at)
		if err != nil {
			return err
		}
		prepared, changes, err := t.decide(at)
		if err != nil {
			return err
		}
		n := len(changes.Reserved) // head and worker on one node are one row each
		admitted += n / 2
		if n == 0 {
			return fmt.Errorf("a node with room for %d gangs admitted none", each)
		}
		starts <- at
		pending <- prepared
	}
	close(pending)
	if err := <-failed; err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("    %3d in a transaction: %8.0f gangs/s admitted, %6.0f commits/s   p50 %s p99 %s   (accepted before, %d in a transaction: %.0f/s)\n",
		each, float64(admitted)/took.Seconds(), float64(len(times))/took.Seconds(), times.quantile(0.5), times.quantile(0.99),
		submitBatch, float64(gangs)/accepted.Seconds())
	return nil
}

func make0(n int) []byte {
	filler := make([]byte, n)
	for i := range filler {
		filler[i] = byte('a' + i%26)
	}
	return filler
}
