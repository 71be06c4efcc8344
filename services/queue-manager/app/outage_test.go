package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Whatever one message says, the others are dealt with.
func TestNoMessageStopsTheLeader(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(w *world, running workload.ID){
		"a cancellation with a NUL": func(w *world, running workload.ID) {
			w.publish(event.WorkloadSubject("default"), &event.WorkloadCancel{Workload: running, Why: "a\x00b"})
		},
		"a cancellation of what is no id": func(w *world, _ workload.ID) {
			w.publish(event.WorkloadSubject("default"), &event.WorkloadCancel{Workload: "nonsense"})
		},
		"a status with a NUL": func(w *world, running workload.ID) {
			w.status(event.GangStatus{
				Workload: running, Attempt: 1, Created: true, Outcome: event.OutcomeFailed, Message: "last log lines: a\x00b",
			})
			w.phase(running, workload.Failed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 4)
			running := w.submit(gangOf("running", "default", 1))
			w.command(running, event.Present, 1)
			send(w, running)
			w.command(w.submit(gangOf("after", "default", 1)), event.Present, 1)
		})
	}
}

// The gang's places are freed before its pods are reported gone, so the pods are
// charged as unreserved pods; the leader dies before the report. The next one must not go
// on with the stored charge.
func TestAChargeForStraysDoesNotOutliveTheTerm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	first := w.submit(gangOf("first", "default", 2))
	command := w.command(first, event.Present, 1)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true})
	gone := event.GangObserved{Cluster: cluster, Workload: first}
	seen := gone
	for i := range 2 {
		seen.Pods = append(seen.Pods, event.GangPod{
			Name: fmt.Sprint(i), Attempt: 1, PodSet: "workers", Node: command.Placements[0].Node, Phase: "Running", Ready: true,
			Requests: resource.List{"cpu": 1000, "memory": 1 << 30, "pods": 1, "nvidia.com/gpu": 1},
		})
	}
	seen.Version = w.nextVersion()
	w.publish(event.GangSubject(cluster, first), &seen)
	w.cancel("default", first)
	w.command(first, event.Absent, 1)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Gone: true, Released: true})
	w.phase(first, workload.Cancelled)
	w.stop()
	gone.Version = w.nextVersion()
	w.publish(event.GangSubject(cluster, first), &gone)
	w.start()
	w.command(w.submit(gangOf("second", "default", 2)), event.Present, 1)
}

// TestCommandsComeBackSoon: an operator removes or purges the stream of commands while the
// connection stands, and no command is published that would reveal it. Other services may
// have made the stream again.
func TestCommandsComeBackSoon(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*world) error{
		"removed": func(w *world) error { return jetStream(w).DeleteStream(w.ctx, bus.DispatchStream) },
		"made again by another": func(w *world) error {
			if err := jetStream(w).DeleteStream(w.ctx, bus.DispatchStream); err != nil {
				return err
			}
			return w.bus.EnsureStreams(w.ctx)
		},
		"purged": func(w *world) error {
			stream, err := jetStream(w).Stream(w.ctx, bus.DispatchStream)
			if err != nil {
				return err
			}
			return stream.Purge(w.ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("a", 1)
			id := w.submit(gangOf("running", "default", 1))
			w.command(id, event.Present, 1)
			quiet := time.After(2 * lookEvery) // it has looked at the stream
			<-quiet
			if err := lose(w); err != nil {
				t.Fatal(err)
			}
			lost := time.Now()
			for {
				m, err := w.bus.LastMessage(w.ctx, bus.DispatchStream, event.DispatchSubject(cluster, id))
				if err == nil && m != nil {
					break
				}
				if took := time.Since(lost); took > patience {
					t.Fatalf("the command is not there %s after the loss: %v", took, err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Logf("the command is there after %s", time.Since(lost))
		})
	}
}

// lookEvery is how often a publisher looks at its stream.
const lookEvery = 3 * time.Second

func jetStream(w *world) jetstream.JetStream {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	return js
}

// What ended while no queue-manager was there is learned at the start: its
// reservation is freed, and the waiting gang gets the place.
func TestReservationsOfWhatEndedMeanwhileAreFreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	first := w.submit(gangOf("first", "default", 1))
	command := w.command(first, event.Present, 1)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true})
	w.pods(command)
	w.phase(first, workload.Running)
	second := w.submit(gangOf("second", "default", 1))
	w.waits(second, workload.ReasonFit)
	w.stop()
	w.publish(event.GangSubject(cluster, first), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: first})
	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true, Gone: true, Released: true})
	w.start()
	w.phase(first, workload.Cancelled) // a user has deleted it
	w.command(second, event.Present, 1)
}
