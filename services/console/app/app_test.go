package app_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/console/app"
)

const patience = 30 * time.Second

// serve runs the console until the test ends.
func serve(t *testing.T, config app.Config) (address string) {
	t.Helper()
	listening := make(chan net.Addr, 1)
	config.Address, config.Server, config.Listening = "127.0.0.1:0", "http://127.0.0.1:1", func(a net.Addr) { listening <- a }
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, &config, service.NewRuntime(zaptest.NewLogger(t), "console")) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case bound := <-listening:
		return bound.String()
	case err := <-ended:
		ended <- err
		t.Fatalf("the console ended with %v", err)
		return ""
	}
}

// status asks for the page to log in on a new connection that stays open, and returns the
// status, which is empty when the connection is closed unread.
func status(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET /login HTTP/1.1\r\nHost: a\r\n\r\n") // it may be closed already
	line := make([]byte, len("HTTP/1.1 200"))
	if n, err := io.ReadFull(conn, line); n == 0 && err != nil {
		if strings.Contains(err.Error(), "timeout") {
			t.Fatal("the connection is neither answered nor closed")
		}
		return ""
	}
	return strings.TrimPrefix(string(line), "HTTP/1.1 ")
}

// A browser's address has a bounded number of connections, unless a proxy has it.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config app.Config
		within int
		beyond string
	}{
		"a setting":   {app.Config{ConnectionsPerAddress: 2}, 2, ""},
		"the default": {app.Config{}, 256, ""},
		"a proxy":     {app.Config{BehindTLS: true}, 256, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, test.config)
			for i := range test.within {
				if got := status(t, address); got != "200" {
					t.Fatalf("connection %d has status %q, want 200", i+1, got)
				}
			}
			if got := status(t, address); got != test.beyond {
				t.Errorf("a connection beyond %d has status %q, want %q", test.within, got, test.beyond)
			}
		})
	}
}

// A template that makes no address of a page is refused at the start, with the flag's name.
func TestTemplatesAreChecked(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]app.Config{"dashboard-url": {DashboardURL: "ftp://a.example/{name}"}, "logs-url": {LogsURL: "https://a.example/{pod}"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.Address, config.Server = "127.0.0.1:0", "http://127.0.0.1:1"
			if err := config.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
				t.Errorf("error %v, want one of %s", err, name)
			}
		})
	}
}

// A bound that no server can keep is refused.
func TestBoundsOfConnections(t *testing.T) {
	t.Parallel()
	for _, bound := range []int{-1, 5000} {
		config := app.Config{Address: "127.0.0.1:0", Server: "http://127.0.0.1:1", ConnectionsPerAddress: bound}
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "connections-per-address") {
			t.Errorf("%d connections of an address: %v, want an error", bound, err)
		}
	}
}
