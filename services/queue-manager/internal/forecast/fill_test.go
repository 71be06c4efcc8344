package forecast

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
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
