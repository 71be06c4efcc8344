package inflight

import (
	"math"
	"net"
	"sync"
)

// Listen returns l with a bound on the open connections of one address. It closes a connection
// beyond the bound unread.
func Listen(l net.Listener, each int) net.Listener {
	return &listener{Listener: l, addresses: New(each, math.MaxInt)}
}

type listener struct {
	net.Listener
	addresses *Limiter
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := Host(accepted.RemoteAddr().String())
		if l.addresses.Acquire(host) {
			return &conn{Conn: accepted, closed: sync.OnceFunc(func() { l.addresses.Release(host) })}, nil
		}
		_ = accepted.Close()
	}
}

// conn counts as open until it is closed.
type conn struct {
	net.Conn
	closed func()
}

func (c *conn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// Host is the address of a client without its port.
func Host(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
