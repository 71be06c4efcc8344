package workload_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// TestWhenPlacesAreGivenBack: the earlier of what is declared and the limit counts, and what was
// learned where it says more.
func TestWhenPlacesAreGivenBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	at := func(hours int) time.Time { return now.Add(time.Duration(hours) * time.Hour) }
	hours := func(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Hour) }
	running := func(declared, limit int) workload.Record {
		r := workload.Record{Phase: workload.Running, Times: workload.Times{Admitted: at(-2), Running: at(-1)}}
		r.Life.RunTime, r.Life.MaxRunTime = hours(declared), hours(limit)
		return r
	}
	for name, c := range map[string]struct {
		record  workload.Record
		learned time.Time
		want    workload.End
	}{
		"nothing is known":          {running(0, 0), time.Time{}, workload.End{}},
		"declared":                  {running(5, 0), time.Time{}, workload.End{At: at(3), By: workload.EndDeclared}},
		"a limit":                   {running(0, 3), time.Time{}, workload.End{At: at(2), By: workload.EndLimit}},
		"a limit that comes first":  {running(5, 3), time.Time{}, workload.End{At: at(2), By: workload.EndLimit}},
		"declared, and comes first": {running(3, 5), time.Time{}, workload.End{At: at(1), By: workload.EndDeclared}},
		"learned":                   {running(0, 0), at(4), workload.End{At: at(4), By: workload.EndLearned}},
		"learned, and comes first":  {running(5, 0), at(1), workload.End{At: at(1), By: workload.EndLearned}},
		"learned, and comes later":  {running(5, 0), at(4), workload.End{At: at(3), By: workload.EndDeclared}},
		"declared is over":          {running(1, 0), at(4), workload.End{At: at(4), By: workload.EndLearned}},
		"declared is over, unknown": {running(1, 0), time.Time{}, workload.End{At: at(-1), By: workload.EndDeclared}},
		"it has not run yet": {func() workload.Record {
			r := running(0, 3)
			r.Phase, r.Times.Running = workload.Dispatched, time.Time{}
			return r
		}(), time.Time{}, workload.End{}},
		"it is evicted": {func() workload.Record {
			r := running(5, 3)
			r.Phase, r.EvictAt = workload.Evicting, at(0)
			return r
		}(), at(4), workload.End{At: at(0), By: workload.EndTornDown}},
		"it has ended": {func() workload.Record {
			r := running(5, 3)
			r.Phase, r.Times.Finished = workload.Succeeded, at(0)
			return r
		}(), at(4), workload.End{At: at(0), By: workload.EndTornDown}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.record.ExpectedEnd().OrLearned(c.learned, now); got != c.want {
				t.Errorf("it ends at %+v, want %+v", got, c.want)
			}
		})
	}
}
