package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestLiveStateIsBounded: of each queue the first ones are read, by priority and submission,
// and all that holds places; the rest is counted.
func TestLiveStateIsBounded(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "q", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}, {Name: "r", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	l.commit(t, admitted(1, "runs", 1, 1, 100))
	for i := range 6 {
		changes := admitted(int64(i+2), fmt.Sprintf("w%d", i), 1, 1, 100)
		w := &changes.Added[0].Record
		w.Phase, w.Holding, w.Cluster, w.Queue = workload.Queued, false, "", []string{"q", "q", "q", "q", "r", "r"}[i]
		if i == 3 {
			w.Priority = 5
		}
		changes.Reserved = nil
		l.commit(t, changes)
	}
	for name, c := range map[string]struct {
		perQueue, most int
		want           []string
		left           int
	}{
		"all":             {10, 100, []string{"runs", "w0", "w1", "w2", "w3", "w4", "w5"}, 0},
		"two of a queue":  {2, 100, []string{"runs", "w0", "w3", "w4", "w5"}, 2},
		"one of each":     {10, 2, []string{"runs", "w3", "w4"}, 4},
		"never less":      {10, 0, []string{"runs", "w3", "w4"}, 4},
		"an equal number": {10, 5, []string{"runs", "w0", "w3", "w4", "w5"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, err := l.LiveState(t.Context(), c.perQueue, c.most)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range live.Workloads {
				got = append(got, w.Name)
			}
			if slices.Sort(got); !slices.Equal(got, c.want) || live.Left != c.left || len(live.Queues) != 2 || len(live.Nodes) != 1 {
				t.Errorf("got %v, %d left, %d queues, %d nodes; want %v, %d left", got, live.Left, len(live.Queues), len(live.Nodes), c.want, c.left)
			}
		})
	}
}

// TestEnded: those that are named and those of a part of the order, each once and the last
// ones, in the order of submission.
func TestEnded(t *testing.T) {
	t.Parallel()
	l := open(t)
	began := time.Now().Add(-time.Hour)
	var ids []workload.ID
	for i := range 4 {
		changes := admitted(int64(i+1), fmt.Sprintf("e%d", i), 1, 1, 100)
		l.commit(t, changes)
		r := changes.Added[0].Record
		ids = append(ids, r.ID)
		r.Phase, r.Holding, r.Times.Finished = workload.Succeeded, false, began.Add(time.Duration(i)*time.Minute)
		l.commit(t, state.Changes{Updated: []workload.Record{r}, Freed: []workload.ID{r.ID}})
	}
	for name, c := range map[string]struct {
		gone        []workload.ID
		after, upTo int64
		most        int
		want        []string
	}{
		"all":            {nil, 0, 9, 10, []string{"e0", "e1", "e2", "e3"}},
		"the last two":   {nil, 0, 9, 2, []string{"e2", "e3"}},
		"later ones":     {nil, 2, 9, 10, []string{"e2", "e3"}},
		"not yet":        {nil, 1, 2, 10, []string{"e1"}},
		"named ones":     {ids[:2], 4, 4, 10, []string{"e0", "e1"}},
		"each once":      {ids, 2, 9, 10, []string{"e0", "e1", "e2", "e3"}},
		"an unknown one": {[]workload.ID{"00000000-0000-5000-8000-000000000000"}, 9, 9, 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, err := l.Ended(t.Context(), c.gone, c.after, c.upTo, c.most)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range ended {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
