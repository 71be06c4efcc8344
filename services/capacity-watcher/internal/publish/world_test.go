package publish_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

func connect(t *testing.T) *bus.Bus {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: "test", Logger: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// publisher runs a publisher; the channel gets a value after each list.
func publisher(t *testing.T, b *bus.Bus, before publish.History, epoch int64) (*publish.Publisher, <-chan struct{}) {
	t.Helper()
	p, synced, _ := endingPublisher(t, b, before, epoch)
	return p, synced
}

// endingPublisher also returns a channel that gets Run's error.
func endingPublisher(t *testing.T, b *bus.Bus, before publish.History, epoch int64) (*publish.Publisher, <-chan struct{}, <-chan error) {
	t.Helper()
	synced := make(chan struct{}, 100)
	p := publish.New(publish.Options{
		Bus: b, Cluster: "c", ResyncEvery: time.Hour, Logger: zaptest.NewLogger(t),
		Metrics: publish.NewMetrics(prometheus.NewRegistry()), Synced: func() { synced <- struct{}{} },
		Epoch: epoch, Held: func() error { return nil }, LookEvery: 20 * time.Millisecond,
	}, before)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() { defer close(done); ended <- p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p, synced, ended
}

// values returns the payloads of the stream in its order.
func values(t *testing.T, b *bus.Bus) []event.Payload {
	t.Helper()
	deliveries, err := b.LastValues(t.Context(), bus.CapacityStream, event.CapacityFilter("c"))
	if err != nil {
		t.Fatal(err)
	}
	var payloads []event.Payload
	for _, d := range deliveries {
		_, payload, err := d.Event()
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, payload)
	}
	return payloads
}

func machine(name string) capacity.Node {
	return capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{resource.CPU: 1000}}
}

func await(t *testing.T, synced <-chan struct{}) {
	t.Helper()
	select {
	case <-synced:
	case <-time.After(10 * time.Second):
		t.Fatal("no list within 10s")
	}
}
