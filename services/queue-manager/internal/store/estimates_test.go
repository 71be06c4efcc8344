package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestEstimatesAreKept: estimates come back as they were made; those of a workload that waits are
// open until it is scored, and a replaced leader keeps none.
func TestEstimatesAreKept(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "gang", 1, 1, 100)
	started := time.Now().UTC().Truncate(time.Microsecond)
	changes.Added[0].Times.Admitted = started
	l.commit(t, changes)
	id := changes.Added[0].ID
	made := started.Add(-time.Hour)
	first := store.MadeEstimate{Workload: id, Queue: "q", Made: made, Wait: time.Minute, Quantiles: []time.Duration{time.Minute, time.Hour}}
	second := store.MadeEstimate{Workload: id, Queue: "q", Made: made.Add(time.Minute), Unknown: "it is held"}
	if _, err := l.KeepEstimates(t.Context(), l.term.Epoch, []store.MadeEstimate{first, second, first}, nil); err != nil {
		t.Fatal(err)
	}
	past, err := l.PastEstimates(t.Context(), id, 0, 1)
	want := []query.PastEstimate{{MadeAt: made, P50: made.Add(time.Minute), P90: made.Add(time.Hour)}, {MadeAt: second.Made, Unknown: second.Unknown}}
	if diff := cmp.Diff(want, past); err != nil || diff != "" {
		t.Errorf("past estimates: %v %s", err, diff)
	}
	open, last, err := l.OpenEstimates(t.Context())
	if err != nil || len(open) != 1 || !open[0].Made.Equal(first.Made) || len(last) != 1 || last[0].Unknown != second.Unknown {
		t.Errorf("open are %+v and %+v, %v; want the first and the last estimate", open, last, err)
	}
	scored := store.ScoredEstimate{MadeEstimate: first, Started: started}
	if _, err := l.KeepEstimates(t.Context(), l.term.Epoch, nil, []store.ScoredEstimate{scored}); err != nil {
		t.Fatal(err)
	}
	scores, err := l.Scores(t.Context())
	if diff := cmp.Diff([]store.ScoredEstimate{scored}, scores); err != nil || diff != "" {
		t.Errorf("scores: %v %s", err, diff)
	}
	if open, _, err := l.OpenEstimates(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("open are %+v, %v; want none of what is scored", open, err)
	}
	if _, err := l.KeepEstimates(t.Context(), l.term.Epoch-1, []store.MadeEstimate{second}, nil); err == nil {
		t.Error("a replaced leader keeps estimates")
	}
}

// TestTheFirstEstimateOfALiveWorkloadStays: it is scored by that, however many came since.
func TestTheFirstEstimateOfALiveWorkloadStays(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "gang", 1, 1, 100)
	l.commit(t, changes)
	made := time.Now().UTC().Truncate(time.Microsecond)
	var all []store.MadeEstimate
	for i := range 4 {
		for _, id := range []workload.ID{changes.Added[0].ID, "7d3c1c1e-0d7e-5a55-8a3e-5d0a4a2f6a30"} { // the other has ended
			all = append(all, store.MadeEstimate{Workload: id, Queue: "q", Made: made.Add(time.Duration(i) * time.Minute), Quantiles: []time.Duration{1, 2}})
		}
	}
	if _, err := l.KeepEstimates(t.Context(), l.term.Epoch, all, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.DeleteEstimates(t.Context(), l.term.Epoch, 2); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[workload.ID][]time.Time{all[0].Workload: {all[0].Made, all[6].Made}, all[1].Workload: {all[7].Made}} {
		past, err := l.PastEstimates(t.Context(), id, 0, 1)
		var got []time.Time
		for _, e := range past {
			got = append(got, e.MadeAt.UTC())
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("estimates of %s: %v %s", id, err, diff)
		}
	}
}

// TestARefusedEstimateKeepsNoneOut: what the database cannot hold is left out, and counted.
func TestARefusedEstimateKeepsNoneOut(t *testing.T) {
	t.Parallel()
	l := open(t)
	id := workload.ID("7d3c1c1e-0d7e-5a55-8a3e-5d0a4a2f6a30")
	made := time.Now().UTC().Truncate(time.Microsecond)
	var all []store.MadeEstimate
	for i := range 5 {
		all = append(all, store.MadeEstimate{Workload: id, Queue: "q", Made: made.Add(time.Duration(i) * time.Minute), Unknown: "it is held"})
	}
	all[2].Unknown = "\x00"
	scored := store.ScoredEstimate{MadeEstimate: store.MadeEstimate{Workload: id, Queue: "q", Made: made, Quantiles: []time.Duration{1}}, Started: made}
	refused, err := l.KeepEstimates(t.Context(), l.term.Epoch, all, []store.ScoredEstimate{scored})
	if refused != 1 || err != nil {
		t.Errorf("%d are refused, %v; want one", refused, err)
	}
	past, err := l.PastEstimates(t.Context(), id, 0, 1)
	scores, failed := l.Scores(t.Context())
	if len(past) != 4 || len(scores) != 1 || err != nil || failed != nil {
		t.Errorf("kept are %d estimates and %d scores, %v, %v; want 4 and 1", len(past), len(scores), err, failed)
	}
}
