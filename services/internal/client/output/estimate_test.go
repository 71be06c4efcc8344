package output_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
)

func TestWhatIfSame(t *testing.T) {
	t.Parallel()
	some := []query.WhatIfWorkload{{Name: "a"}}
	for want, answer := range map[string]query.WhatIfAnswer{
		"Nothing differs: 1 waiting workload starts as without the change.": {Same: 1},
		"The change affects no waiting workload.":                           {},
		"Nothing else waits.":                                               {Workloads: some},
		"7 waiting workloads start as without the change. 3 far back in their queues were not simulated.": {Workloads: some, Same: 7, LeftOut: 3},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			if got := output.WhatIfSame(answer); got != want {
				t.Errorf("it says %q", got)
			}
		})
	}
}

func TestStartsIn(t *testing.T) {
	t.Parallel()
	at := now()
	for name, c := range map[string]struct {
		record workload.Record
		want   string
	}{
		"runs":          {workload.Record{Phase: workload.Running, Extra: &workload.Extra{NextStart: &workload.Estimate{P50: at}}}, ""},
		"not estimated": {workload.Record{Phase: workload.Queued}, ""},
		"unknown":       {workload.Record{Phase: workload.Queued, Extra: &workload.Extra{NextStart: &workload.Estimate{Unknown: "it waits", Behind: []string{"a/b", "c/d"}}}}, "unknown: it waits: a/b, c/d"},
		"due": {
			workload.Record{Phase: workload.Queued, Extra: &workload.Extra{NextStart: &workload.Estimate{MadeAt: at.Add(-time.Minute), P50: at.Add(-42 * time.Second), P90: at.Add(time.Hour)}}},
			"expected now; by " + at.Add(time.Hour).Local().Format(time.DateTime) + " (p90); estimated 60s ago",
		},
		"overdue": {
			workload.Record{Phase: workload.Queued, Extra: &workload.Extra{NextStart: &workload.Estimate{MadeAt: at.Add(-time.Minute), P50: at.Add(-42 * time.Second), P90: at.Add(-time.Second)}}},
			"expected now; estimated 60s ago",
		},
		"known": {
			workload.Record{Phase: workload.Queued, Extra: &workload.Extra{NextStart: &workload.Estimate{MadeAt: at.Add(-5 * time.Second), P50: at.Add(20 * time.Minute), P90: at.Add(3 * time.Hour)}}},
			"in about 20m, at " + at.Add(20*time.Minute).Local().Format(time.DateTime) + " (p50); by " + at.Add(3*time.Hour).Local().Format(time.DateTime) + " (p90); estimated 5s ago",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := output.StartsIn(&c.record, at); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
