package store_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// swallowing is a proxy before Postgres that may lose what is sent, and keeps the connection.
type swallowing struct {
	word atomic.Pointer[string] // from this word on a connection loses all requests; nil for none
	url  string
}

// swallow stands between the store and the server of a URL.
func swallow(t *testing.T, service string) *swallowing {
	t.Helper()
	config, err := pgconn.ParseConfig(service)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	parsed, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host = listener.Addr().String()
	values := parsed.Query()
	values.Del("host")
	values.Del("port")
	parsed.RawQuery = values.Encode()
	s := &swallowing{url: parsed.String()}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				_ = client.Close()
				return
			}
			t.Cleanup(func() { _ = client.Close() })
			t.Cleanup(func() { _ = server.Close() })
			go func() { _, _ = io.Copy(client, server) }()
			go s.requests(client, server)
		}
	}()
	return s
}

func (s *swallowing) requests(client, server net.Conn) {
	lost, buffer := false, make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			_ = server.Close()
			return
		}
		word := s.word.Load()
		lost = lost || word != nil && bytes.Contains(buffer[:n], []byte(*word))
		if !lost {
			_, _ = server.Write(buffer[:n])
		}
	}
}

// TestAnAnswerThatIsLostIsNotWaitedForForEver: a pooler keeps its connections and loses what it
// was sent. Neither a statement timeout nor the kernel ends the wait.
func TestAnAnswerThatIsLostIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		word string
		do   func(context.Context, *store.Store, *store.Leadership) error
	}{
		"a commit": {"", func(ctx context.Context, s *store.Store, term *store.Leadership) error {
			_, err := s.Commit(ctx, state.Changes{Epoch: term.Epoch})
			return err
		}},
		"a question": {"", func(ctx context.Context, s *store.Store, _ *store.Leadership) error {
			_, err := s.Watermarks(ctx)
			return err
		}},
		"the lock of leaders": {"pg_try_advisory_lock", func(ctx context.Context, s *store.Store, term *store.Leadership) error {
			term.End()
			_, err := s.Lead(ctx, "again", silence, func() {})
			return err
		}},
		"the next epoch": {"UPDATE leader", func(ctx context.Context, s *store.Store, term *store.Leadership) error {
			term.End()
			_, err := s.Lead(ctx, "again", silence, func() {})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := swallow(t, testServer.As(t, testServer.Database(t), "muster_queue_manager"))
			timeouts := store.DefaultTimeouts()
			timeouts.Statement = time.Second
			s, err := store.Open(t.Context(), proxy.url, timeouts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			term, err := s.Lead(t.Context(), "test", silence, func() {})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(term.End)
			proxy.word.Store(&c.word)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := c.do(ctx, s, term); err == nil || ctx.Err() != nil {
				t.Errorf("it returns %v after the context: %v; want an error before that", err, ctx.Err())
			} else if strings.Contains(err.Error(), "refused") {
				t.Errorf("it is taken for a refusal: %v", err)
			}
		})
	}
}
