package local

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// TestAPartThatHasEndedIsNotReady: another part may answer at the address that it could
// not open.
func TestAPartThatHasEndedIsNotReady(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(other.Close)
	p := &process{binary: "/bin/false", log: filepath.Join(t.TempDir(), "log"), ready: other.URL}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if err := p.awaitReady(t.Context()); err == nil {
		t.Error("it is ready, although it has ended")
	}
}
