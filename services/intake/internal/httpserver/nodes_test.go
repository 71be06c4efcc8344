package httpserver

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
)

// TestNodesOverHTTP: operators alone list nodes, and queue-manager is asked for those that the
// parameters select.
func TestNodesOverHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		caller, parameters string
		status             int
		want               []query.NodesRequest
	}{
		"all":               {"olga", "", http.StatusOK, []query.NodesRequest{{}}},
		"a page":            {"olga", "?cluster=c&name=n&prefix=g&state=closed&from=c/n-1&limit=100&holders=true", http.StatusOK, []query.NodesRequest{{Cluster: "c", Name: "n", Prefix: "g", State: query.NodeClosed, From: query.NodeName{Cluster: "c", Name: "n-1"}, Limit: 100, Holders: true}}},
		"a tenant":          {"alice", "", http.StatusForbidden, nil},
		"an odd state":      {"olga", "?state=odd", http.StatusBadRequest, nil},
		"from no node":      {"olga", "?from=n", http.StatusBadRequest, nil},
		"too many":          {"olga", "?limit=501", http.StatusBadRequest, nil},
		"none":              {"olga", "?limit=0", http.StatusBadRequest, nil},
		"no yes or no":      {"olga", "?holders=yes", http.StatusBadRequest, nil},
		"a name of control": {"olga", "?prefix=a%0ab", http.StatusBadRequest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			if answer, body := w.ask(t, c.caller, http.MethodGet, "/v1/nodes"+c.parameters, ""); answer.StatusCode != c.status {
				t.Errorf("status %d: %s; want %d", answer.StatusCode, body, c.status)
			}
			if diff := cmp.Diff(c.want, w.selected); diff != "" {
				t.Error(diff)
			}
		})
	}
}
