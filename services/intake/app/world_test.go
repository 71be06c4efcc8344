package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/intake/app"
)

const (
	queue    = "default"
	patience = 30 * time.Second
)

const manifest = `apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: %s}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: ray, image: "rayproject/ray:2.52.0", resources: {limits: {cpu: 2}}}]}}
`

// world is intake with a real NATS; the test is the submitter and queue-manager.
type world struct {
	t        *testing.T
	ctx      context.Context
	server   *natsserver.Server
	bus      *bus.Bus
	config   app.Config
	accepted <-chan bus.Delivery
	rejected <-chan bus.Delivery
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	b, err := bus.Connect(ctx, bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(ctx); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: ctx, server: server, bus: b, config: app.Config{NATS: bus.Settings{URL: server.URL()}}}
	if w.accepted, err = b.Work(ctx, bus.Work{Stream: bus.WorkloadStream, Durable: "test", AckWait: patience}); err != nil {
		t.Fatal(err)
	}
	following, err := b.Replay(ctx, bus.EventsStream, "muster.events.*.*")
	if err != nil {
		t.Fatal(err)
	}
	w.rejected = following.C
	return w
}

// start runs intake; stop ends it.
func (w *world) start() (stop func() error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	runtime := service.NewRuntime(zaptest.NewLogger(w.t, zaptest.Level(zap.ErrorLevel)), "intake")
	config := w.config
	go func() { ended <- app.Run(ctx, &config, runtime) }()
	waiting, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := runtime.Health.WaitReady(waiting); err != nil {
		w.t.Fatal(err)
	}
	var result error
	stopped := false
	stop = func() error {
		if stopped {
			return result
		}
		stopped = true
		cancel()
		result = <-ended
		return result
	}
	w.t.Cleanup(func() { _ = stop() })
	return stop
}

// submit publishes the manifest under the id as YAML in a CloudEvent. The
// message id is not the event's, so that NATS lets repetitions through.
func (w *world) submit(messageID, id, text string) bus.Published {
	w.t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		w.t.Fatal(err)
	}
	encoded, err := event.Envelope{
		SpecVersion: event.SpecVersion, ID: id, Source: "test", Type: event.SubmitType,
		DataContentType: "application/yaml", Data: data,
	}.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.send(messageID, encoded)
}

func (w *world) send(messageID string, data []byte) bus.Published {
	w.t.Helper()
	published, err := w.bus.PublishEncoded(event.SubmitSubject(queue), messageID, data, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return published
}

func (w *world) stored(published bus.Published) {
	w.t.Helper()
	if err := published.Wait(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) nextAccepted() *event.WorkloadSubmitted {
	w.t.Helper()
	return next[*event.WorkloadSubmitted](w, w.accepted)
}

func (w *world) nextRejected() *event.WorkloadRejected {
	w.t.Helper()
	return next[*event.WorkloadRejected](w, w.rejected)
}

func next[P event.Payload](w *world, from <-chan bus.Delivery) P {
	w.t.Helper()
	var none P
	select {
	case d := <-from:
		_, payload, err := d.Event()
		if err != nil {
			w.t.Fatal(err)
		}
		d.Ack()
		got, ok := payload.(P)
		if !ok {
			w.t.Fatalf("got %T on %s, want %T", payload, d.Subject, none)
		}
		return got
	case <-time.After(patience):
		w.t.Fatalf("no %T within %s", none, patience)
	}
	return none
}

// nothingMore fails if anything else was published: a good submission marks the end,
// because results keep the order of submissions.
func (w *world) nothingMore() {
	w.t.Helper()
	w.stored(w.submit("marker", "marker", fmt.Sprintf(manifest, "marker")))
	if got := w.nextAccepted(); got.Workload.Name != "marker" {
		w.t.Errorf("there is another workload: %s", got.Workload.Name)
	}
	select {
	case d := <-w.rejected:
		w.t.Errorf("there is another event: %s", d.Data)
	default:
	}
}
