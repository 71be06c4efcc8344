package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/zap"
)

// TestSharesOfCallers: a caller at its limit is refused until one of its requests has
// ended; others are not.
func TestSharesOfCallers(t *testing.T) {
	t.Parallel()
	s := &Server{Options: Options{Logger: zap.NewNop()}, requests: ofEach(2)}
	entered, leave := make(chan string), make(chan struct{})
	handle := s.limited(s.requests, "requests", func(_ http.ResponseWriter, _ *http.Request, caller string) error {
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
}
