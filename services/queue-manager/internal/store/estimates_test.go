package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
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
	if err := l.KeepEstimates(t.Context(), l.term.Epoch, []store.MadeEstimate{first, second, first}, nil); err != nil {
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
	if err := l.KeepEstimates(t.Context(), l.term.Epoch, nil, []store.ScoredEstimate{scored}); err != nil {
		t.Fatal(err)
	}
	scores, err := l.Scores(t.Context())
	if diff := cmp.Diff([]store.ScoredEstimate{scored}, scores); err != nil || diff != "" {
		t.Errorf("scores: %v %s", err, diff)
	}
	if open, _, err := l.OpenEstimates(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("open are %+v, %v; want none of what is scored", open, err)
	}
	if err := l.KeepEstimates(t.Context(), l.term.Epoch-1, []store.MadeEstimate{second}, nil); err == nil {
		t.Error("a replaced leader keeps estimates")
	}
}
