package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestUsageIsStoredAndRead: steps come back as they were written, the last before a time is
// found, and a workload without steps is read from its row.
func TestUsageIsStoredAndRead(t *testing.T) {
	t.Parallel()
	l := open(t)
	begin := time.Now().UTC().Truncate(time.Microsecond).Add(-time.Hour)
	changes := admitted(1, "w", 1, 1, 100)
	w := &changes.Added[0].Record
	w.Times = workload.Times{Submitted: begin.Add(-time.Minute), Admitted: begin}
	step := func(minutes int, phase workload.Phase, held int64) state.HistoryRow {
		u := &workload.UsageStep{Queue: "q", Namespace: "ns", Submitter: "http/ann"}
		if held > 0 {
			u.Held = []workload.HeldResources{{Flavor: "f", Resources: resource.List{"cpu": held}}}
		}
		return state.HistoryRow{Workload: w.ID, At: begin.Add(time.Duration(minutes) * time.Minute), Phase: phase, Attempt: 1, Cluster: "c", Usage: u}
	}
	steps := []state.HistoryRow{step(0, workload.Admitted, 100), step(1, workload.Running, 100), step(30, workload.Running, 200)}
	steps[0].Usage.Since = w.Times.Submitted
	changes.History = []state.HistoryRow{{Workload: w.ID, At: begin, Phase: workload.Queued, Attempt: 1}, steps[0], steps[1], steps[2]}
	l.commit(t, changes)

	bare := admitted(2, "bare", 1, 1, 300)
	b := &bare.Added[0].Record
	b.Phase, b.Times = workload.Running, workload.Times{Submitted: begin, Admitted: begin.Add(time.Minute), Running: begin.Add(2 * time.Minute)}
	l.commit(t, bare)

	err := l.Usage(t.Context(), func(h *store.UsageHistory) error {
		var read, last, live []state.HistoryRow
		into := func(all *[]state.HistoryRow) func(state.HistoryRow) error {
			return func(s state.HistoryRow) error { s.At = s.At.UTC(); *all = append(*all, s); return nil }
		}
		if err := h.Steps(t.Context(), begin.Add(time.Minute), into(&read)); err != nil {
			return err
		}
		if diff := cmp.Diff(steps[1:], read); diff != "" {
			t.Errorf("steps: %s", diff)
		}
		if err := h.Last(t.Context(), []workload.ID{w.ID, b.ID}, begin.Add(time.Minute), into(&last)); err != nil {
			return err
		}
		if diff := cmp.Diff(steps[:1], last); diff != "" {
			t.Errorf("the last before: %s", diff)
		}
		var part []state.HistoryRow
		if err := h.Within(t.Context(), begin, begin.Add(30*time.Minute), into(&part)); err != nil {
			return err
		}
		if diff := cmp.Diff(steps[:2], part); diff != "" {
			t.Errorf("steps of a part: %s", diff)
		}
		for minutes, want := range map[int]int{0: 0, 1: 1, 30: 1, 31: 0} { // all of its steps are no later ones
			if later, err := h.Later(t.Context(), begin.Add(time.Duration(minutes)*time.Minute)); err != nil || len(later) != want {
				t.Errorf("steps later than %d minutes are of %v, %v; want %d workloads", minutes, later, err, want)
			}
		}
		holding, err := h.Holding(t.Context())
		if err != nil {
			return err
		}
		if diff := cmp.Diff([]workload.ID{w.ID, b.ID}, holding); diff != "" {
			t.Errorf("holding: %s", diff)
		}
		if err := h.Live(t.Context(), []workload.ID{b.ID}, into(&live)); err != nil {
			return err
		}
		if len(live) != 2 || live[0].Phase != workload.Admitted || !live[0].Usage.Since.Equal(begin) || live[1].Phase != workload.Running ||
			!live[1].At.Equal(b.Times.Running) || !live[1].Usage.Since.IsZero() || live[1].Usage.Held[0].Resources["cpu"] != 300 {
			t.Errorf("of the row: %+v", live)
		}
		oldest, err := h.Oldest(t.Context())
		if err == nil && !oldest.Equal(begin) {
			t.Errorf("the oldest step is of %s, want %s", oldest, begin)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
