package forecast

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestFewEstimatesAreKept: an estimate is kept when it is the first or differs, and the longer a
// workload waits, the fewer.
func TestFewEstimatesAreKept(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	at := func(after, wait time.Duration) store.MadeEstimate {
		return store.MadeEstimate{Made: began.Add(after), Wait: wait, Quantiles: []time.Duration{wait}}
	}
	kept := lastKept{first: began, last: at(0, time.Hour)}
	for name, c := range map[string]struct {
		next store.MadeEstimate
		want bool
	}{
		"at once":           {at(time.Second, 9*time.Hour), false},
		"the same start":    {at(10*time.Minute, 50*time.Minute), false},
		"a later start":     {at(10*time.Minute, 2*time.Hour), true},
		"none any more":     {store.MadeEstimate{Made: began.Add(10 * time.Minute), Unknown: "it is held"}, true},
		"a little later on": {at(30*time.Minute, 31*time.Minute), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := kept.due(c.next); got != c.want {
				t.Errorf("it is kept: %v, want %v", got, c.want)
			}
		})
	}
	number, last := 1, kept
	for after := time.Minute; after < 30*24*time.Hour; after += time.Minute {
		if next := at(after, time.Hour); last.due(next) { // its start is always an hour ahead
			last.last = next
			number++
		}
	}
	if number < 20 || number > 100 {
		t.Errorf("%d estimates of a wait of 30 days are kept, want 20 to 100", number)
	}
}

// keeper has what an earlier leader has kept.
type keeper struct {
	Store
	leads       bool
	err         error
	first, last []store.MadeEstimate
	past        []store.ScoredEstimate
	made        []store.MadeEstimate
	scored      []store.ScoredEstimate
}

func (k *keeper) Leads(context.Context, string) (epoch int64, leads bool, err error) {
	if k.leads {
		epoch = 7
	}
	return epoch, k.leads, nil
}

func (k *keeper) OpenEstimates(context.Context) (first, last []store.MadeEstimate, err error) {
	return k.first, k.last, nil
}

func (k *keeper) Scores(context.Context) ([]store.ScoredEstimate, error) { return k.past, nil }

func (k *keeper) KeepEstimates(_ context.Context, _ int64, made []store.MadeEstimate, scored []store.ScoredEstimate) (int, error) {
	if k.err != nil {
		return 0, k.err
	}
	k.made, k.scored = append(k.made, made...), append(k.scored, scored...)
	return 0, nil
}

// TestALeaderGoesOnWithWhatWasKept: a workload that an earlier leader has estimated is scored by
// that estimate; what cannot be kept is kept later; a standby keeps nothing.
func TestALeaderGoesOnWithWhatWasKept(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	hours := make([]time.Duration, len(estimate.Levels()))
	for i := range hours {
		hours[i] = time.Hour
	}
	first := store.MadeEstimate{Workload: "w", Queue: "q", Made: began, Wait: time.Hour, Quantiles: hours}
	k := &keeper{first: []store.MadeEstimate{first}, last: []store.MadeEstimate{first}, past: []store.ScoredEstimate{{MadeEstimate: first, Started: began.Add(2 * time.Hour)}}}
	f := &Forecaster{Store: k, Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()), known: map[workload.ID]bool{"w": true, "x": true}}
	f.restore(t.Context())
	f.kept.add(store.MadeEstimate{Workload: "w", Made: began.Add(time.Minute), Quantiles: hours}) // it says the same
	f.kept.add(store.MadeEstimate{Workload: "x", Queue: "q", Made: began, Unknown: "it is held"})
	started := &workload.Record{Workload: workload.Workload{ID: "w"}, Times: workload.Times{Admitted: began.Add(30 * time.Minute)}}
	f.scores.started(started, f.Metrics)
	f.keep(t.Context())
	if len(k.made)+len(k.scored) > 0 {
		t.Fatalf("a standby keeps %+v and %+v", k.made, k.scored)
	}

	k.leads, k.err = true, errors.New("Postgres is away")
	f.restore(t.Context())
	f.kept.add(store.MadeEstimate{Workload: "x", Queue: "q", Made: began, Unknown: "it is held"})
	f.scores.started(started, f.Metrics)
	f.keep(t.Context())
	k.err = nil
	f.kept.add(store.MadeEstimate{Workload: "x", Queue: "q", Made: began, Unknown: "it is held"})
	f.keep(t.Context())
	f.kept.add(store.MadeEstimate{Workload: "x", Queue: "q", Made: began.Add(time.Hour), Unknown: "it is held"})
	f.keep(t.Context())
	if diff := cmp.Diff([]store.MadeEstimate{{Workload: "x", Queue: "q", Made: began, Unknown: "it is held"}}, k.made); diff != "" {
		t.Errorf("kept estimates: %s", diff)
	}
	if diff := cmp.Diff([]store.ScoredEstimate{{MadeEstimate: first, Started: began.Add(30 * time.Minute)}}, k.scored); diff != "" {
		t.Errorf("kept scores: %s", diff)
	}
	if got := f.scores.results()["q"]; got.Started != 2 || got.P90Coverage != 0.5 {
		t.Errorf("of the estimates came %+v, want 2 starts, half of them by the p90", got)
	}
}

// TestScoresThatAreNotKeptOutliveATakeOver: they are kept then, and count.
func TestScoresThatAreNotKeptOutliveATakeOver(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	first := store.MadeEstimate{Workload: "w", Queue: "q", Made: began, Wait: time.Hour, Quantiles: make([]time.Duration, len(estimate.Levels()))}
	k := &keeper{leads: true, err: errors.New("Postgres is away"), first: []store.MadeEstimate{first}, last: []store.MadeEstimate{first}}
	f := &Forecaster{Store: k, Logger: zap.NewNop(), Metrics: NewMetrics(prometheus.NewRegistry()), known: map[workload.ID]bool{"w": true}}
	f.restore(t.Context())
	f.scores.started(&workload.Record{Workload: workload.Workload{ID: "w"}, Times: workload.Times{Admitted: began.Add(time.Hour)}}, f.Metrics)
	f.keep(t.Context())
	k.err, f.kept.epoch = nil, 3 // an earlier term
	f.restore(t.Context())
	f.keep(t.Context())
	if diff := cmp.Diff([]store.ScoredEstimate{{MadeEstimate: first, Started: began.Add(time.Hour)}}, k.scored); diff != "" {
		t.Errorf("kept scores: %s", diff)
	}
	if got := f.scores.results()["q"].Started; got != 1 || len(f.scores.open) > 0 {
		t.Errorf("%d starts are scored, and %d are open; want 1 and none", got, len(f.scores.open))
	}
}
