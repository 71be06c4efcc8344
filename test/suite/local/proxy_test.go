package local

import (
	"net"
	"testing"
	"time"
)

// TestHalfClose: the far end of an open connection goes, the near one is not told,
// and a new connection passes.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	p, err := newProxy(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	connect := func() (near, far net.Conn) {
		near, err := net.Dial("tcp", p.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = near.Close() })
		if _, err := near.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		far = <-accepted
		if _, err := far.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return near, far
	}
	near, far := connect()
	p.halfClose()
	_ = far.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("the far end is still connected")
	}
	_ = near.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := near.Read(make([]byte, 1)); err == nil || !err.(net.Error).Timeout() {
		t.Errorf("the near end was told: %v", err)
	}
	connect()
}
