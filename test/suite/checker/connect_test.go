package checker

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/pkg/local/natsserver"
)

// TestConnect: the checker connects by itself, and an error names the file that it cannot read.
func TestConnect(t *testing.T) {
	t.Parallel()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	conn, err := Connect(Login{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if got := conn.Status(); got != nats.CONNECTED {
		t.Errorf("the connection is %s", got)
	}
	missing := filepath.Join(t.TempDir(), "operator.nk")
	if _, err := Connect(Login{URL: server.URL(), Seed: missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("with a seed that is not there: %v, want an error with %q", err, missing)
	}
}
