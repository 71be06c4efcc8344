package stack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// link is the way of a member to NATS, which can be cut.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newLink listens on a port of its own and leads to the host of the URL; the second result
// is the URL of the link.
func newLink(ctx context.Context, to string) (*link, string, error) {
	target, err := url.Parse(to)
	if err != nil {
		return nil, "", fmt.Errorf("read the address of NATS %q: %w", to, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listen for the link to NATS: %w", err)
	}
	l := &link{listener: listener, to: target.Host, conns: map[net.Conn]bool{}}
	go l.accept()
	target.Host = listener.Addr().String()
	return l, target.String(), nil
}

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // it is closed
		}
		far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.to)
		if err != nil || !l.keep(near, far) {
			_ = near.Close() // the client tries again
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		go l.pipe(near, far)
		go l.pipe(far, near)
	}
}

// keep reports whether the link stands.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = !l.cut
	}
	return !l.cut
}

func (l *link) pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from) // either end may close it
	_, _ = from.Close(), to.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, from)
}

// set cuts the link or mends it.
func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		if cut {
			_ = c.Close() // the other side notices
		}
	}
}

// Cut cuts the member off from NATS: its services run on and reach their API server. Mend
// ends that.
func (m *Member) Cut() { m.link.set(true) }

// Mend ends a Cut.
func (m *Member) Mend() { m.link.set(false) }
