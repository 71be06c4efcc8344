package httpserver

import (
	"net/http"
	"strings"
	"testing"
)

// TestManifestOverHTTP: a manifest is for callers that may see the workload.
func TestManifestOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	path := "/v1/workloads/" + string(own) + "/manifest"
	for caller, want := range map[string]int{"olga": http.StatusOK, "alice": http.StatusOK, "bob": http.StatusNotFound} {
		t.Run(caller, func(t *testing.T) {
			answer, body := w.ask(t, caller, http.MethodGet, path, "")
			if answer.StatusCode != want || (want == http.StatusOK) != strings.Contains(body, `"RayJob"`) {
				t.Errorf("%d, want %d: %s", answer.StatusCode, want, body)
			}
		})
	}
}
