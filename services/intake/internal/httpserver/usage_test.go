package httpserver

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// TestUsageOverHTTP: queue-manager is asked for what the caller may see, and for nothing when
// that is nothing.
func TestUsageOverHTTP(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	until := since.Add(time.Hour)
	const path = "/v1/usage?since=2026-03-04T00:00:00Z&until=2026-03-04T01:00:00Z"
	for name, c := range map[string]struct {
		caller, path string
		want         []query.UsageRequest
	}{
		"an operator": {"olga", path, []query.UsageRequest{{Since: since, Until: until}}},
		"a tenant":    {"alice", path, []query.UsageRequest{{Since: since, Until: until, Within: []query.Place{{Queue: "a", Namespaces: []string{"a1"}}}}}},
		"its queue": {"alice", path + "&queue=a&by=namespace,flavor&resource=nvidia.com/gpu&price=a100:nvidia.com/gpu=2.5", []query.UsageRequest{{
			Since: since, Until: until, Queue: "a", By: []string{"namespace", "flavor"}, Resources: []resource.Name{"nvidia.com/gpu"}, Prices: []query.Price{{Flavor: "a100", Resource: "nvidia.com/gpu", PerHour: 2.5}},
			Within: []query.Place{{Queue: "a", Namespaces: []string{"a1"}}},
		}}},
		"another's queue": {"alice", path + "&queue=b", nil},
		"without a queue": {"mallory", path, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			answer, body := w.ask(t, c.caller, http.MethodGet, c.path, "")
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%d: %s", answer.StatusCode, body)
			}
			if diff := cmp.Diff(c.want, w.reports); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadReportsOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for parameters, want := range map[string]string{
		"":                                       "want a since before the until",
		"since=yesterday":                        `since "yesterday": want a time`,
		"since=2026-03-04T00:00:00Z&by=colour":   `by "colour"`,
		"since=2026-03-04T00:00:00Z&price=x":     `price "x"`,
		"since=2026-03-04T00:00:00Z&queue=a%0Ab": "want the name of an object",
		"since=2026-03-04T00:00:00Z&color=red":   `there is no parameter "color"`,
		"since=1999-03-04T00:00:00Z":             "want at most 366 days",
	} {
		t.Run(parameters, func(t *testing.T) {
			answer, body := w.ask(t, "olga", http.MethodGet, "/v1/usage?"+parameters, "")
			refused(t, answer, body, http.StatusBadRequest, want)
		})
	}
	if len(w.reports) > 0 {
		t.Errorf("queue-manager was asked for %+v", w.reports)
	}
}
