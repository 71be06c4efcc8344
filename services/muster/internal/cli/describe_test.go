package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

// TestDescribeHasWhatAnEvictionWouldLose: of a workload that has started, `describe` prints the last
// checkpoint and what the leader answers that an eviction would lose. Without an answer it prints
// the rest.
func TestDescribeHasWhatAnEvictionWouldLose(t *testing.T) {
	t.Parallel()
	saved := time.Now().UTC().Truncate(time.Second).Add(-10 * time.Minute)
	const loses = "Eviction:    if it is evicted now, it loses 4800 accelerator-seconds since its last checkpoint at "
	for name, c := range map[string]struct {
		phase   workload.Phase
		answers bool
		want    string // nothing of an eviction if it is empty
		asked   int
	}{
		"running":            {workload.Running, true, loses + saved.Format(time.RFC3339) + "\n", 1},
		"running, no leader": {workload.Running, false, "", 1},
		"being evicted":      {workload.Evicting, true, "", 0},
		"waiting":            {workload.Queued, true, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := recordOf('2', "train", c.phase)
			record.Attempt = 1
			record.SetSaved(record.Saved().Next(1, saved, saved))
			asked := make(chan struct{}, 10)
			answer := func(w http.ResponseWriter, value any) {
				if err := json.NewEncoder(w).Encode(value); err != nil {
					t.Error(err)
				}
			}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/workloads", func(w http.ResponseWriter, _ *http.Request) {
				answer(w, httpapi.WorkloadsPage{Workloads: []workload.Record{record}})
			})
			mux.HandleFunc("GET /v1/workloads/{id}", func(w http.ResponseWriter, _ *http.Request) {
				answer(w, httpapi.Description{Record: record})
			})
			mux.HandleFunc("GET /v1/workloads/{id}/explanation", func(w http.ResponseWriter, _ *http.Request) {
				asked <- struct{}{}
				if !c.answers {
					w.WriteHeader(http.StatusServiceUnavailable)
					answer(w, httpapi.Problem{Error: "no queue-manager leads"})
					return
				}
				answer(w, query.ExplainAnswer{Explanation: workload.Explanation{Workload: record.ID, Eviction: &workload.EvictionCost{
					Lost: 4800, Since: saved, Checkpoint: true, Unit: workload.UnitAccelerators,
				}}})
			})
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			got := run(t, "", "describe", "workload", "train", "--server", server.URL)
			if got.code != exit.OK || !strings.Contains(got.out, "Checkpoint:") || !strings.Contains(got.out, c.want) || (c.want != "") != strings.Contains(got.out, "Eviction:") {
				t.Errorf("%+v, want the last checkpoint and %q", got, c.want)
			}
			if len(asked) != c.asked {
				t.Errorf("asked %d times, want %d", len(asked), c.asked)
			}
		})
	}
}
