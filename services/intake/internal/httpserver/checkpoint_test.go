package httpserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/spec/workload"
)

// TestACheckpointToComeIsStoredOnce: a time to come counts as the present before it is compared with
// the last checkpoint, so that requests with one are stored every ten seconds at most.
func TestACheckpointToComeIsStoredOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	toCome := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		phase  workload.Phase
		ago    time.Duration // the last checkpoint
		at     time.Time
		want   time.Time // of the published one; zero if there is none
		status int       // of the refusal
	}{
		"to come, soon after the last": {workload.Running, 2 * time.Second, toCome, time.Time{}, 0},
		"to come, after ten seconds":   {workload.Running, 11 * time.Second, toCome, now, 0},
		"to come, the first":           {workload.Running, 0, toCome, now, 0},
		"now, soon after the last":     {workload.Running, 2 * time.Second, now, time.Time{}, 0},
		"past":                         {workload.Running, time.Minute, now.Add(-30 * time.Second), now.Add(-30 * time.Second), 0},
		"before its admission":         {workload.Running, 0, now.Add(-2 * time.Hour), time.Time{}, http.StatusConflict},
		"it waits":                     {workload.Queued, 0, toCome, time.Time{}, http.StatusConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := workload.Record{Workload: workload.Workload{ID: own}, Phase: c.phase, Attempt: 3}
			record.Times.Admitted = now.Add(-time.Hour)
			if c.ago > 0 {
				record.SetSaved((*workload.Saved)(nil).Next(3, now.Add(-c.ago), now.Add(-c.ago)))
			}
			published, err := savedAt(record, asker{by: "http/alice", submitter: "http/alice"}, c.at, now)
			var refused *failure
			if errors.As(err, &refused) != (c.status != 0) || refused != nil && refused.status != c.status {
				t.Fatalf("the answer is %v, want %d", err, c.status)
			}
			if c.want.IsZero() {
				if published != nil {
					t.Errorf("published is %+v, want nothing", published)
				}
				return
			}
			report, is := published.(*event.WorkloadCheckpoint)
			if !is || !report.At.Equal(c.want) || report.Attempt != 3 || report.Submitter != "http/alice" {
				t.Errorf("published is %+v, want a report of %s", published, c.want)
			}
		})
	}
}

// TestACheckpointThatCountsForNothingIsAnswered: nothing is published, and the answer says so.
func TestACheckpointThatCountsForNothingIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits()) // without NATS: nothing is published
	w.saved = (*workload.Saved)(nil).Next(0, time.Now(), time.Now())
	for _, query := range []string{"", "?at=2999-01-01T00:00:00Z"} {
		answer, body := w.ask(t, "alice", http.MethodPut, "/v1/workloads/"+string(own)+"/checkpoint"+query, "")
		var changing httpapi.Changing
		if err := json.Unmarshal([]byte(body), &changing); err != nil || answer.StatusCode != http.StatusAccepted || changing != (httpapi.Changing{Workload: own, Unchanged: true}) {
			t.Errorf("%q: %d %s, want 202 and that nothing changes", query, answer.StatusCode, body)
		}
	}
}
