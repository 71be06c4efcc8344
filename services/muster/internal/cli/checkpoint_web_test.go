package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
)

// saving is the HTTP API with a workload that runs. It notes a checkpoint by its own clock, unless
// the last one is too near. asked gets the times that are sent.
func saving(t *testing.T, last, noted time.Time, asked chan string) string {
	t.Helper()
	record := recordOf('2', "train", workload.Running)
	record.Attempt = 1
	if !last.IsZero() {
		record.SetSaved(record.Saved().Next(1, last, last))
	}
	stored := make(chan struct{})
	answer := func(w http.ResponseWriter, value any) {
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	send := func(w http.ResponseWriter, payload event.Payload) {
		data, err := json.Marshal(payload)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "time: 2026-03-04T05:00:00Z\nevent: %s\ndata: %s\n\n", payload.EventType(), data)
		w.(http.Flusher).Flush()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/workloads", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, httpapi.WorkloadsPage{Workloads: []workload.Record{record}})
	})
	mux.HandleFunc("PUT /v1/workloads/{id}/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Query().Get("at")
		if !noted.IsZero() {
			close(stored)
		}
		w.WriteHeader(http.StatusAccepted)
		answer(w, httpapi.Changing{Workload: record.ID, Unchanged: noted.IsZero()})
	})
	mux.HandleFunc("GET /v1/workloads/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		send(w, &event.WorkloadChanged{Record: record})
		select {
		case <-r.Context().Done():
			return
		case <-stored:
		}
		after := record
		after.SetSaved(after.Saved().Next(1, noted, noted))
		send(w, &event.WorkloadChanged{Record: after})
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestACheckpointOverHTTP: without --at the server's clock counts, the answer is the next
// checkpoint in the stream, and one that is too near to the last is answered at once.
func TestACheckpointOverHTTP(t *testing.T) {
	t.Parallel()
	behind := time.Now().UTC().Truncate(time.Second).Add(-time.Hour) // where the clock here is an hour ahead
	for name, c := range map[string]struct {
		last, noted time.Time
		want        string
	}{
		"the first":                              {time.Time{}, behind, "rayjob/train has saved its work at " + behind.Format(time.RFC3339) + "\n"},
		"another":                                {behind.Add(-time.Hour), behind, "rayjob/train has saved its work at " + behind.Format(time.RFC3339) + "\n"},
		"too near":                               {behind, time.Time{}, "unchanged: rayjob/train has saved its work at " + behind.Format(time.RFC3339) + "\n"},
		"too near to one that is not known here": {time.Time{}, time.Time{}, "unchanged: rayjob/train is so already\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 10)
			if got := run(t, "", "checkpoint", "train", "--timeout", "20s", "--server", saving(t, c.last, c.noted, asked)); got != (result{exit.OK, c.want, ""}) {
				t.Errorf("%+v, want %q", got, c.want)
			}
			if at := <-asked; at != "" || len(asked) > 0 {
				t.Errorf("asked is with the time %q, and %d times more; want it once without a time", at, len(asked))
			}
		})
	}
}
