package state

import (
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestTheCommandHasWhetherAGangStartsWhole: by the rule of the queue, and only while the gang
// is to be there.
func TestTheCommandHasWhetherAGangStartsWhole(t *testing.T) {
	t.Parallel()
	for start, want := range map[workload.Start]bool{0: false, workload.StartEarly: false, workload.StartWhole: true} {
		t.Run(start.String(), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{Start: start}}, 3)
			if got := s.commanded(); got.State != event.Present || got.Whole != want {
				t.Errorf("the command is %s and whole is %v, want present and %v", got.State, got.Whole, want)
			}
		})
	}
}
