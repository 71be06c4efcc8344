package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
)

// TestSettleEndsWithoutNATS: when intake stops without a server, it returns unstored
// results together, not one timeout after the other.
func TestSettleEndsWithoutNATS(t *testing.T) {
	t.Parallel()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		server.Stop()
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	server.Stop()
	awaitDisconnected(t, b)

	const results = 5
	in := &intake{bus: b, logger: zap.NewNop(), results: newResults(prometheus.NewRegistry()), published: make(chan underway, results)}
	for i := range results {
		stored, err := b.PublishAsync(event.EventsSubject("default", ""), event.Envelope{ID: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		in.published <- underway{outcomes: []outcome{{stored: stored}}}
	}
	close(in.published)
	stopping, stop := context.WithCancel(context.Background())
	stop()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		in.settle(stopping)
	}()
	select {
	case <-settled:
	case <-time.After(storeTimeout / 2):
		t.Fatal("still waiting for a server that is gone")
	}
}

func awaitDisconnected(t *testing.T, b *bus.Bus) {
	t.Helper()
	deadline := time.After(storeTimeout)
	for b.Ready() == nil {
		select {
		case <-deadline:
			t.Fatal("the connection does not notice that the server is gone")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
