package httpserver

import (
	"net"
	"sync"
)

// NewListener returns l with a bound on the open connections of one address. It closes
// a connection beyond the bound unread.
func NewListener(l net.Listener, most int) net.Listener {
	return &fairListener{Listener: l, addresses: newShares(most)}
}

type fairListener struct {
	net.Listener
	addresses shares
}

func (l *fairListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // a TCP address has a port
		if l.addresses.acquire(host) {
			return &fairConn{Conn: conn, closed: sync.OnceFunc(func() { l.addresses.release(host) })}, nil
		}
		_ = conn.Close()
	}
}

// fairConn counts as open until it is closed.
type fairConn struct {
	net.Conn
	closed func()
}

func (c *fairConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
