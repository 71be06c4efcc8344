package access_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/message/event"
)

// The server keeps every subscription and every connection in its memory, which all
// share. One key, a tenant's or a stolen one of a cluster's services, takes a bounded
// part of it, and others come in all the same.
func TestAKeyTakesABoundedPartOfTheServer(t *testing.T) {
	t.Parallel()
	users := append(access.Users("here"), tenant(t, "a", "q"), tenant(t, "b", "theirs"))
	url, dir := start(t, users)
	subjects := map[string]string{
		"tenant-a": event.EventsSubject("q", "*"), access.CapacityWatcher("here"): event.AskSubject("here"), access.Dispatcher("here"): event.AskSubject("here"),
	}
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := connectMany(t, url, keys.File(dir, name), 1000)
			if len(open) == 1000 {
				t.Error("a thousand connections of one key are open")
			}
			if got := subscribeMany(t, open[0], subject, 1000); got == 1000 {
				t.Error("a thousand subscriptions of one connection are there")
			} else if most := 8192; got*len(open) > most {
				t.Errorf("%d connections may have %d subscriptions each, more than %d in all", len(open), got, most)
			}
			if _, err := connect(t, url, keys.File(dir, "tenant-b")); err != nil {
				t.Errorf("another tenant does not come in: %v", err)
			}
		})
	}
}

// connectMany connects until the server refuses, and returns the connections.
func connectMany(t *testing.T, url, seed string, most int) (open []*nats.Conn) {
	t.Helper()
	key, err := nats.NkeyOptionFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	for len(open) < most {
		nc, err := nats.Connect(url, key, nats.Timeout(patience), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			if !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
				t.Errorf("connection %d: %v, want the refusal of too many", len(open)+1, err)
			}
			break
		}
		t.Cleanup(nc.Close)
		open = append(open, nc)
	}
	if len(open) == 0 {
		t.Fatal("the first connection is refused")
	}
	return open
}

// subscribeMany subscribes until the server refuses, and returns how many it took.
func subscribeMany(t *testing.T, nc *nats.Conn, subject string, most int) int {
	t.Helper()
	for i := range most {
		if _, err := nc.SubscribeSync(strings.Replace(subject, "*", fmt.Sprintf("w%d", i), 1)); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		if err := nc.LastError(); err != nil {
			if !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
				t.Errorf("subscription %d: %v, want the refusal of too many", i+1, err)
			}
			return i
		}
	}
	return most
}
