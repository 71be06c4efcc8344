package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const manifestBytes = 2000

// submitBatch is how many gangs are stored at once before the measurement.
const submitBatch = 500

// podRequests are those of each of the two pods of a gang.
func podRequests() resource.List { return resource.List{"cpu": 1000, "memory": 1 << 30, "pods": 1} }

// admit has gangs wait, which is not measured, and then a node arrive for each
// transaction, with room for exactly its gangs. The next transaction is decided while
// the last one is written, as the service does.
func (t *term) admit(ctx context.Context, each, gangs int) error {
	accepted, err := t.submit(ctx, gangs)
	if err != nil {
		return err
	}
	times, took, err := writeWhileDeciding(ctx, gangs, func(at time.Time) (store.Transaction, int, error) { return t.admission(each, at) })
	if err != nil {
		return err
	}
	fmt.Printf("    %3d in a transaction: %8.0f gangs/s admitted, %6.0f commits/s   p50 %s p99 %s   (accepted before, %d in a transaction: %.0f/s)\n",
		each, float64(gangs)/took.Seconds(), float64(len(times))/took.Seconds(), times.quantile(0.5), times.quantile(0.99),
		submitBatch, float64(gangs)/accepted.Seconds())
	return nil
}

// writeWhileDeciding makes transactions until they have admitted a number of gangs: the next one
// is decided while the last one is written. It returns how long each took, and all together.
func writeWhileDeciding(ctx context.Context, gangs int, decide func(at time.Time) (store.Transaction, int, error)) (times samples, took time.Duration, err error) {
	pending := make(chan store.Transaction, 1)
	failed := make(chan error, 1)
	starts := make(chan time.Time, 16)
	go func() {
		defer close(failed)
		for write := range pending {
			if _, err := write(ctx); err != nil {
				failed <- err
				for range pending {
				}
				return
			}
			times = append(times, time.Since(<-starts))
		}
	}()
	began := time.Now()
	for admitted := 0; admitted < gangs; {
		at := time.Now()
		write, n, err := decide(at)
		if err != nil {
			close(pending)
			<-failed
			return nil, 0, err
		}
		admitted += n
		starts <- at
		pending <- write
	}
	close(pending)
	if err := <-failed; err != nil {
		return nil, 0, err
	}
	return times, time.Since(began), nil
}

// admitAlone is admit of one gang after the other: nothing else is on its way.
func (t *term) admitAlone(ctx context.Context, gangs int) error {
	if _, err := t.submit(ctx, gangs); err != nil {
		return err
	}
	var times samples
	for range gangs {
		at := time.Now()
		write, _, err := t.admission(1, at)
		if err != nil {
			return err
		}
		if _, err := write(ctx); err != nil {
			return err
		}
		times = append(times, time.Since(at))
	}
	fmt.Printf("      1 alone, nothing on its way: from the node's arrival to the commit p50 %s p99 %s\n", times.quantile(0.5), times.quantile(0.99))
	return nil
}

// submit has gangs wait, and returns how long it took to store them.
func (t *term) submit(ctx context.Context, gangs int) (time.Duration, error) {
	manifest := manifestOf()
	began := time.Now()
	for at := 0; at < gangs; at += submitBatch {
		for range min(submitBatch, gangs-at) {
			err := t.submitOne(manifest, time.Now())
			if err != nil {
				return 0, err
			}
		}
		if err := t.commit(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func manifestOf() json.RawMessage {
	return json.RawMessage(`{"kind":"RayCluster","spec":"` + string(make0(manifestBytes)) + `"}`)
}

// submitOne has the state take in a gang of two pods.
func (t *term) submitOne(manifest json.RawMessage, at time.Time) error {
	t.names++
	name := fmt.Sprintf("gang-%d-%d", t.led.Epoch, t.names)
	return t.apply(&event.WorkloadSubmitted{Manifest: manifest, Workload: workload.Workload{
		ID: event.WorkloadID("bench", name), Queue: "fits", Kind: workload.KindRayCluster, Name: name, Digest: name,
		PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: podRequests()}},
			{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: podRequests()}},
		},
	}}, at)
}

// admission is the transaction of a node that arrives with room for a number of gangs,
// and how many it admits.
func (t *term) admission(each int, at time.Time) (_ store.Transaction, admitted int, err error) {
	t.seq++
	err = t.apply(&event.NodeObserved{
		Version: event.Version{Session: t.led.Epoch, Seq: t.seq},
		Node: capacity.Node{
			Cluster: "bench", Name: fmt.Sprintf("n-%d-%d", t.led.Epoch, t.seq), Ready: true, Allocatable: podRequests().Times(int64(2 * each)),
		},
	}, at)
	if err != nil {
		return nil, 0, err
	}
	write, changes, err := t.decide(at)
	if err != nil {
		return nil, 0, err
	}
	if len(changes.Reserved) != 2*each { // head and worker on one node are one row each
		return nil, 0, fmt.Errorf("a node with room for %d gangs has %d reservations", each, len(changes.Reserved))
	}
	return write, each, nil
}

func make0(n int) []byte {
	filler := make([]byte, n)
	for i := range filler {
		filler[i] = byte('a' + i%26)
	}
	return filler
}
