package app_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// persistent are refusals of the workload bad with an SQLSTATE that passes by waiting, and
// never does, by what is refused.
func persistent() map[string]refusal {
	ofOne := refusalsOfOne()
	as := func(name, state string) refusal {
		r := ofOne[name]
		r.state = state
		return r
	}
	waits := as("an admission", "57014")
	waits.want = func(w *world) { w.waits(event.WorkloadID("test", "bad"), workload.ReasonNotStorable) }
	return map[string]refusal{
		"a submission that is rolled back":          as("a submission", "40001"),
		"an admission that takes too long":          waits,
		"a state on a damaged page":                 as("the state of one that runs", "58030"),
		"a message for which there is no space":     as("a message about one that runs", "53100"),
		"a removal of places that are never in use": as("the removal of reservations", "55000"),
	}
}

// Whatever passes by waiting and does not: the workload that it belongs to waits, and everybody
// else goes on.
func TestWhatNeverPassesIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	for name, c := range persistent() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.concernsItAlone(t)
		})
	}
}

// A workload of which nothing could be stored for a while goes on by itself when that is over.
func TestWhatPassesAfterAllGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	id := w.submit(gangOf("bad", "default", 1))
	command := w.command(id, event.Present, 1)
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
	w.phase(id, workload.Dispatched)
	w.refuse("workloads", "UPDATE", fmt.Sprintf("NEW.id = '%s'", id), "57014")
	w.pods(command)
	await(w, "a reason", func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Reason != nil && e.Reason.Kind == workload.ReasonNotStorable
	})
	w.others("other")
	w.sql(`DROP TRIGGER refuse_for_test ON workloads`)
	w.phase(id, workload.Running)
	w.checkReplay()
}
