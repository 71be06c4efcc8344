package bustest

import (
	"testing"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
)

// Connect starts a NATS server with Muster's streams for the test, and returns a
// connection to it; both end with the test.
func Connect(t *testing.T) *bus.Bus {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}
