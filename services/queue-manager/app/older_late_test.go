package app_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A replaced leader's command of time that Postgres has lost arrives in a term that has
// compared the streams, and that publishes no command. What the command starts is removed.
func TestACommandOfLostTimeArrivesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	known := w.started(w.submit(gangOf("runs", "default", 1)), 1)
	w.stop()
	state, err := w.bus.State(w.ctx, bus.DispatchStream)
	if err != nil {
		t.Fatal(err)
	}
	w.countTerms()
	w.start()
	w.waits(w.submit(gangOf("big", "default", 9)), workload.ReasonFit) // the term has begun

	late := *known
	late.Workload, late.Name = event.WorkloadID("test", "late"), "late"
	id := fmt.Sprintf("queue-manager/%d/1000000", known.Epoch)
	encoded, err := event.Marshal(id, event.QueueManagerSource, time.Now(), "", &late)
	if err != nil {
		t.Fatal(err)
	}
	published, err := w.bus.PublishNext(event.DispatchSubject(cluster, late.Workload), id, encoded, 0, bus.End{Sequence: state.Last})
	if err == nil {
		_, err = published.Stored(w.ctx)
	}
	if err != nil {
		t.Fatalf("the late command does not arrive: %v", err)
	}
	removed := w.command(late.Workload, event.Absent, 1)
	if removed.Epoch <= known.Epoch {
		t.Errorf("it is removed in epoch %d, and was of %d", removed.Epoch, known.Epoch)
	}
	w.recovered(map[string]float64{"requeued": 0, "removed": 1, "ended": 0, "lost": 0, "unasked": 0})
	w.goneAs(late.Workload, 1)
	w.command(late.Workload, event.Forgotten, 1)
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
}
