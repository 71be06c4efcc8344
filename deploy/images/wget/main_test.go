package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthCheck(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			http.Error(w, "JetStream is not current", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		arguments []string
		fault     string // empty for none
	}{
		"healthy":           {[]string{"-q", "--spider", server.URL + "/healthz"}, ""},
		"not ready":         {[]string{"-q", "--spider", server.URL + "/"}, "503 Service Unavailable: JetStream is not current"},
		"no answer":         {[]string{"-q", "--spider", gone.URL}, "refused"},
		"another command":   {[]string{"-O", "/tmp/file", server.URL}, "want -q --spider URL"},
		"without arguments": {nil, "want -q --spider URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := run(c.arguments)
			switch {
			case err == nil && c.fault != "":
				t.Errorf("%q succeeded, want a fault with %q", c.arguments, c.fault)
			case err != nil && (c.fault == "" || !strings.Contains(err.Error(), c.fault)):
				t.Errorf("%q failed: %v; want %q", c.arguments, err, c.fault)
			}
		})
	}
}
