package natsserver_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/local/natsserver"
)

// A server in a process of its own does what one inside of this process does.
func TestServer(t *testing.T) {
	program := os.Getenv(natsserver.EnvProgram)
	if program == "" && os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
		t.Errorf("%s is not set", natsserver.EnvProgram)
	}
	for name, program := range map[string]string{"embedded": "", "process": program} {
		t.Run(name, func(t *testing.T) {
			if program == "" && name == "process" {
				t.Skipf("%s names no nats-server: `make test` does", natsserver.EnvProgram)
			}
			t.Setenv(natsserver.EnvProgram, program)
			dir := t.TempDir()
			server := start(t, dir, -1)
			nc := connect(t, server)
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
				t.Fatal(err)
			}
			if server.Subscribed("heard") {
				t.Error("a subject is subscribed to before anybody does")
			}
			if _, err := nc.SubscribeSync("heard"); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if !server.Subscribed("heard") || server.Subscribed("hear") {
				t.Error("the subscriptions are not as made")
			}
			if got := nc.MaxPayload(); got != 8<<20 {
				t.Errorf("the largest message is %d bytes", got)
			}
			port := portOf(t, server)
			server.Stop()
			if nc, err := nats.Connect(server.URL()); err == nil {
				nc.Close()
				t.Error("a stopped server takes connections")
			}
			again := start(t, dir, port)
			if again.URL() != server.URL() {
				t.Errorf("started again at %s, was at %s", again.URL(), server.URL())
			}
			if js, err = jetstream.New(connect(t, again)); err != nil {
				t.Fatal(err)
			}
			if _, err := js.Stream(t.Context(), "KEPT"); err != nil {
				t.Errorf("the stream after another start: %v", err)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	if os.Getenv(natsserver.EnvProgram) == "" {
		t.Skipf("%s names no nats-server: `make test` does", natsserver.EnvProgram)
	}
	port := portOf(t, start(t, t.TempDir(), -1))
	other, err := natsserver.Start(t.TempDir(), port)
	if err == nil {
		other.Stop()
		t.Fatal("two servers have one port")
	}
	if !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("the error of a port in use is %q", err)
	}
}

func start(t *testing.T, dir string, port int) *natsserver.Server {
	t.Helper()
	server, err := natsserver.Start(dir, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func connect(t *testing.T, server *natsserver.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func portOf(t *testing.T, server *natsserver.Server) int {
	t.Helper()
	_, text, _ := strings.Cut(strings.TrimPrefix(server.URL(), "nats://"), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("the port of %s: %v", server.URL(), err)
	}
	return port
}
