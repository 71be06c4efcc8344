package replay

import (
	"testing"

	"muster.dev/muster/pkg/state/decisionlog"
)

func TestDifferencesHaveAClass(t *testing.T) {
	t.Parallel()
	line := func(recorded, replayed string) *decisionlog.Difference {
		return &decisionlog.Difference{Line: 1, Recorded: recorded, Replayed: replayed}
	}
	for want, d := range map[string]Difference{
		DiffUnreadable: {What: "input 1 of 2"},
		DiffPhase:      {Line: line(`{"workload":{"id":"a","phase":"admitted"}}`, `{"workload":{"id":"a","phase":"queued"}}`)},
		DiffReason:     {Line: line(`{"workload":{"id":"a","phase":"queued"}}`, `{"workload":{"id":"a","phase":"queued","reason":{}}}`)},
		DiffWorkload:   {Line: line(`{"workload":{"id":"a","phase":"queued"}}`, ``)},
		DiffPlaces:     {Line: line(`{"places":{}}`, `{"step":{}}`)},
		DiffOther:      {Line: line(`{"step":{}}`, `not JSON`)},
	} {
		t.Run(want, func(t *testing.T) {
			if got := d.Class(); got != want {
				t.Errorf("%+v is of class %s, want %s", d, got, want)
			}
		})
	}
}
