package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/httpserver"
)

// serveAPI serves the HTTP API with the limits; tokens identify callers.
func serveAPI(t *testing.T, limits httpLimits, connections int) (address string, b *bus.Bus) {
	t.Helper()
	b = bustest.Connect(t)
	err := query.Handle(t.Context(), b.Conn(), query.QueuesSubject, func(context.Context, struct{}) (query.QueuesAnswer, error) {
		return query.QueuesAnswer{Queues: []query.Queue{{Name: "default", Namespaces: []string{"default"}}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := httpserver.ReadTokens([]byte(`
- {name: alice, sha256: 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90}
- {name: bob, sha256: 81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9}
`))
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan net.Addr, 1)
	config := Config{Operator: ray.Shipped(), HTTP: HTTPConfig{
		Address: "127.0.0.1:0", tokens: tokens, limits: limits, ConnectionsPerAddress: connections, Listening: func(a net.Addr) { listening <- a },
	}}
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	if err := serveHTTP(ctx, group, &config, b, budget.New(budget.Default()), service.NewRuntime(zaptest.NewLogger(t), "intake")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = group.Wait()
	})
	return (<-listening).String(), b
}

// dial sends the text on a new connection with a deadline.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSlowClientsAreLetGo: a client that does not complete its header or body loses its
// connection.
func TestSlowClientsAreLetGo(t *testing.T) {
	t.Parallel()
	limits := defaultHTTPLimits()
	limits.header, limits.body = 200*time.Millisecond, 400*time.Millisecond
	address, _ := serveAPI(t, limits, defaultConnections)
	for name, text := range map[string]string{
		"nothing":  "",
		"a header": "GET /v1/queues HTTP/1.1\r\nHost: a\r\nX: ",
		"a body":   "POST /v1/queues/default/workloads HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alice\r\nContent-Length: 1000\r\n\r\nkind:",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := io.ReadAll(dial(t, address, text))
			if err != nil || strings.Contains(string(answer), " 200 ") {
				t.Errorf("the connection ends with %v after %q, want it closed", err, answer)
			}
		})
	}
}

const followDefault = "GET /v1/queues/default/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"

// status returns the status of an answer.
func status(t *testing.T, conn net.Conn) string {
	t.Helper()
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, line); err != nil {
		t.Fatal(err)
	}
	return string(line[len("HTTP/1.1 "):])
}

// TestAStreamThatIsNotReadEnds: a client that follows a queue but does not read loses
// the stream, and may open another one then.
func TestAStreamThatIsNotReadEnds(t *testing.T) {
	t.Parallel()
	limits := defaultHTTPLimits()
	limits.api.Write, limits.api.Streams = 200*time.Millisecond, 1
	address, b := serveAPI(t, limits, defaultConnections)
	if got := status(t, dial(t, address, fmt.Sprintf(followDefault, "alice"))); got != "200" {
		t.Fatalf("the first stream: status %s", got)
	}
	if got := status(t, dial(t, address, fmt.Sprintf(followDefault, "alice"))); got != "429" {
		t.Errorf("a second stream beside it: status %s, want 429", got)
	}
	if got := status(t, dial(t, address, fmt.Sprintf(followDefault, "bob"))); got != "200" {
		t.Errorf("another's stream: status %s", got)
	}
	record := workload.Record{
		Workload: workload.Workload{ID: event.WorkloadID("test", "1"), Queue: "default", Namespace: "default", Name: strings.Repeat("x", 200<<10)},
		Phase:    workload.Queued,
	}
	for deadline := time.Now().Add(soon); ; {
		changed, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{Record: record})
		if err == nil {
			err = b.Publish(t.Context(), event.EventsSubject("default", record.ID), changed)
		}
		if err != nil {
			t.Fatal(err)
		}
		if status(t, dial(t, address, fmt.Sprintf(followDefault, "alice"))) == "200" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the stream that is not read keeps its place")
		}
	}
}

// TestConnectionsOfOneAddressAreBounded: with a bound of two connections, a third one of
// an address is closed until one of them ends.
func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	address, _ := serveAPI(t, defaultHTTPLimits(), 2)
	const ask = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
	first, second := dial(t, address, ask), dial(t, address, ask)
	for _, conn := range []net.Conn{first, second} {
		if got := status(t, conn); got != "200" {
			t.Errorf("within the bound: status %s", got)
		}
	}
	third, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	if err := third.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(third, ask) // it may be closed already
	if n, err := third.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a third connection is answered, or kept: %v", err)
	}
	first.Close()
	for deadline := time.Now().Add(soon); ; {
		response, err := http.Get("http://" + address + "/openapi.json")
		if err == nil {
			response.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after one was closed: %v", err)
		}
	}
}
