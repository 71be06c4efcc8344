package httpserver

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"
)

// TestSharesOfCallers: a caller at its limit is refused until one of its requests has
// ended; others are not.
func TestSharesOfCallers(t *testing.T) {
	t.Parallel()
	s := &Server{Options: Options{Logger: zap.NewNop()}, requests: newShares(2)}
	entered, leave := make(chan string), make(chan struct{})
	handle := s.limited(&s.requests, "requests", func(_ http.ResponseWriter, _ *http.Request, caller string) error {
		entered <- caller
		<-leave
		return nil
	})
	ended := make(chan error)
	request := func(caller string) {
		go func() { ended <- handle(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), caller) }()
	}
	for _, caller := range []string{"http/alice", "http/alice", "http/bob"} {
		request(caller)
		<-entered
	}
	w := httptest.NewRecorder()
	s.writeProblem(w, httptest.NewRequest(http.MethodGet, "/", nil), handle(w, nil, "http/alice"))
	refused(t, w.Result(), w.Body.String(), http.StatusTooManyRequests, "http/alice has 2 requests open")
	if w.Header().Get("Retry-After") == "" {
		t.Error("there is no header Retry-After")
	}
	leave <- struct{}{} // of any of the three; the rest follow
	leave <- struct{}{}
	leave <- struct{}{}
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	request("http/alice")
	<-entered
	leave <- struct{}{}
	if err := <-ended; err != nil {
		t.Errorf("after the end of its requests the caller gets %v", err)
	}
	if len(s.requests.open) > 0 {
		t.Errorf("%v count as open after all have ended", s.requests.open)
	}
}

// TestConnectionsOfAnAddress: one more than the bound is closed unread, and a connection
// that ends makes room for another.
func TestConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := NewListener(inner, 1)
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan net.Conn, 3)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	dial()
	first := <-accepted
	if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("a connection beyond the bound reads %d bytes, %v; want that it is closed", n, err)
	}
	_, _ = first.Close(), first.Close() // closing twice frees one place
	second := dial()
	(<-accepted).Close()
	if _, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection after the first ends with %v, want that it was accepted", err)
	}
}
