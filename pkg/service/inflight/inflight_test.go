package inflight

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// An owner has no more open than its share, and all have no more than the sum; what is
// released is free for others.
func TestLimits(t *testing.T) {
	t.Parallel()
	l := New(2, 3)
	for i, step := range []struct {
		owner string
		want  bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}} {
		if got := l.Acquire(step.owner); got != step.want {
			t.Errorf("step %d: Acquire(%q) = %t", i, step.owner, got)
		}
	}
	l.Release("a")
	if !l.Acquire("b") {
		t.Error("the share that a released is not free for b")
	}
	if l.Acquire("a") {
		t.Error("a takes a fourth share of three")
	}
	for _, owner := range []string{"a", "b", "b"} {
		l.Release(owner)
	}
	if len(l.open) > 0 || l.sum != 0 {
		t.Errorf("%v count as open after all have ended, %d in all", l.open, l.sum)
	}
}

// Beyond the bound of an address a connection is closed unread until another one has ended.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	address := greet(t, 2)
	first := dial(t, address)
	for _, c := range []net.Conn{first, dial(t, address)} {
		if !greeted(t, c) {
			t.Error("a connection within the bound is closed")
		}
	}
	if greeted(t, dial(t, address)) {
		t.Error("a third connection is served")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(soon); !greeted(t, dial(t, address)); {
		if time.Now().After(deadline) {
			t.Fatal("after the first was closed none is served")
		}
	}
	if greeted(t, dial(t, address)) {
		t.Error("the server closes a connection twice, and that frees two places")
	}
}

const soon = 30 * time.Second

// greet serves a byte to each connection, and closes it when the client does.
func greet(t *testing.T, each int) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	bounded := Listen(listener, each)
	go func() {
		for {
			c, err := bounded.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _, _ = c.Close(), c.Close() }()
				_, _ = c.Write([]byte("!"))
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	return c
}

// greeted reports whether the server serves a connection rather than closing it.
func greeted(t *testing.T, c net.Conn) bool {
	t.Helper()
	n, err := c.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a connection is neither served nor closed")
	}
	return n > 0
}
