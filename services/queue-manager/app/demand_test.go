package app_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
)

// TestUnmetDemandIsPublished as an event when it changes, in answers and in metrics.
func TestUnmetDemandIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages, err := w.bus.Listen(w.ctx, event.DemandSubject)
	if err != nil {
		t.Fatal(err)
	}
	published := func(gangs int) {
		t.Helper()
		deadline := time.After(patience)
		for {
			select {
			case d := <-messages:
				_, payload, err := d.Event()
				changed, is := payload.(*event.DemandChanged)
				if err != nil || !is {
					t.Fatalf("message %s: %v", d.Data, err)
				}
				if changed.Gangs == gangs && changed.Epoch > 0 {
					return
				}
			case <-deadline:
				t.Fatalf("no demand of %d gangs was published", gangs)
			}
		}
	}
	w.node("one", 1)
	published(0)
	w.submit(gangOf("first", "default", 2))
	w.submit(gangOf("second", "default", 2))
	published(2)
	w.metric("muster_unmet_gangs", 2)
	w.metric("muster_unmet_pods", 6)
	answer, err := w.queries.Demand(w.ctx)
	if err != nil || answer.Gangs != 2 || len(answer.Shapes) != 1 || answer.Shapes[0].Gangs != 2 || answer.At.IsZero() {
		t.Errorf("the answer is %+v, %v", answer, err)
	}
	w.node("two", 4)
	published(0)
	w.metric("muster_unmet_gangs", 0)
}
