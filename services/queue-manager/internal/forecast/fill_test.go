package forecast

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestUntilWhenANodeIsHeld: the last holder counts, and one of which nothing is known is the last.
func TestUntilWhenANodeIsHeld(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	f := &Forecaster{Now: func() time.Time { return now }, ends: map[workload.ID]time.Time{"learned": now.Add(2 * time.Hour)}}
	declared := query.Holder{ID: "declared", Until: workload.End{At: now.Add(time.Hour), By: workload.EndDeclared}}
	learned := workload.End{At: now.Add(2 * time.Hour), By: workload.EndLearned}
	many := make([]query.Holder, query.MaxHolders+2)
	for i := range many {
		many[i] = query.Holder{ID: workload.ID(fmt.Sprint(i)), Until: declared.Until}
	}
	many[query.MaxHolders+1] = query.Holder{ID: "learned"}
	for name, c := range map[string]struct {
		holders []query.Holder
		want    *workload.End
	}{
		"no holder":           {nil, nil},
		"one that declares":   {[]query.Holder{declared}, &declared.Until},
		"the last":            {[]query.Holder{declared, {ID: "learned"}, declared}, &learned},
		"one is unknown":      {[]query.Holder{declared, {ID: "new"}, {ID: "learned"}}, &workload.End{}},
		"more than are named": {many, &learned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := []query.Node{{Holders: c.holders}}
			f.FillNodes(nodes)
			got := nodes[0]
			if (got.Until == nil) != (c.want == nil) || got.Until != nil && *got.Until != *c.want {
				t.Errorf("it is held until %+v, want %+v", got.Until, c.want)
			}
			if got.HoldersInAll != len(c.holders) || len(got.Holders) != min(len(c.holders), query.MaxHolders) {
				t.Errorf("%d of %d holders are named", len(got.Holders), got.HoldersInAll)
			}
		})
	}
}

// TestWhatIsLeftOutHasNoTime: of a queue of which not all was read, a workload behind that has an
// estimate without a time; one that came later, or waits in another queue, is not estimated yet.
func TestWhatIsLeftOutHasNoTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	waits := func(id workload.ID, queue string, submitted time.Time) workload.Record {
		return workload.Record{Workload: workload.Workload{ID: id, Queue: queue}, Phase: workload.Queued, Times: workload.Times{Submitted: submitted}}
	}
	before := now.Add(-time.Hour)
	live := store.LiveState{Part: 2, Left: 1}
	for _, r := range []workload.Record{
		waits("first", "long", before), waits("second", "long", before), waits("only", "short", before),
		{Workload: workload.Workload{ID: "ran", Queue: "long"}, Phase: workload.Running, Holding: true, Times: workload.Times{Submitted: before}},
	} {
		live.Workloads = append(live.Workloads, state.StoredWorkload{Record: r})
	}
	f := &Forecaster{Now: func() time.Time { return now }}
	f.publish(map[workload.ID]*workload.Estimate{"first": {MadeAt: now, P50: now.Add(time.Hour)}}, nil, beyondOf(now, live))
	for name, c := range map[string]struct {
		record  workload.Record
		unknown string
		made    bool
	}{
		"estimated":                        {waits("first", "long", before), "", true},
		"behind":                           {waits("last", "long", before), "it is too far back in its queue", true},
		"submitted since":                  {waits("new", "long", now.Add(time.Second)), "", false},
		"of a queue that was read":         {waits("moved", "short", before), "", false},
		"one that ran then and waits now":  {waits("ran", "long", before), "", false},
		"one of the first without a start": {waits("second", "long", before), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			records := []workload.Record{c.record}
			f.Fill(records)
			got := records[0].Estimate()
			if (got != nil) != c.made || got != nil && (got.Unknown != c.unknown || got.P50.IsZero() != (c.unknown != "") || !got.MadeAt.Equal(now)) {
				t.Errorf("the estimate is %+v; want one: %t, unknown because %q", got, c.made, c.unknown)
			}
		})
	}
}
