package relay

import (
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestALaterEventKeepsTheRequeue: an answer to a repeated request, or another reason, hides in
// the last event that an operator had the attempt requeued.
func TestALaterEventKeepsTheRequeue(t *testing.T) {
	t.Parallel()
	changed := func(phase workload.Phase, attempt int, kind workload.ReasonKind) *event.WorkloadChanged {
		return &event.WorkloadChanged{Record: workload.Record{Phase: phase, Attempt: attempt, Reason: &workload.Reason{Kind: kind}}}
	}
	for name, c := range map[string]struct {
		events []*event.WorkloadChanged
		want   int
	}{
		"none":                       {[]*event.WorkloadChanged{changed(workload.Evicting, 1, workload.ReasonPreempted)}, 0},
		"one that is being requeued": {[]*event.WorkloadChanged{changed(workload.Evicting, 2, workload.ReasonRequeued)}, 2},
		"one that is refused afterwards": {[]*event.WorkloadChanged{
			changed(workload.Evicting, 2, workload.ReasonRequeued), changed(workload.Evicting, 2, workload.ReasonInvalid),
		}, 2},
		"one that waits again": {[]*event.WorkloadChanged{changed(workload.Queued, 3, workload.ReasonRequeued), changed(workload.Queued, 3, workload.ReasonFit)}, 2},
		"a later attempt": {[]*event.WorkloadChanged{
			changed(workload.Evicting, 2, workload.ReasonRequeued), changed(workload.Running, 3, workload.ReasonPending), changed(workload.Evicting, 3, workload.ReasonRequeued),
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last LastEvent
			for _, each := range c.events {
				last = lastOf(last, each, bus.Delivery{})
			}
			if last.Requeued != c.want {
				t.Errorf("attempt %d is requeued, want %d", last.Requeued, c.want)
			}
		})
	}
}
