package relay_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// NATS dies and comes back with its data while messages are on their way; the
// order on each subject is kept, repetitions aside.
func TestOrderOnASubjectHoldsOverARestartOfNATS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const subjects, each = 5, 60
	var all []store.Outgoing
	for i := range each {
		for s := range subjects {
			id := workload.ID(fmt.Sprintf("w%d", s))
			all = append(all, w.add(t, event.EventsSubject("q", id), &event.WorkloadCancel{Workload: id, Why: fmt.Sprint(i)}),
				w.add(t, event.DispatchSubject("c", id), command(id, 1, int64(i))))
		}
	}
	r, _ := w.relay(t, 1)
	for i := 0; i < len(all); i += 10 {
		r.Hand(all[i : i+10])
		if i == len(all)/2 {
			w.restart(t, w.dir)
		}
	}
	w.drained(t)
	last := map[string]int{}
	following, err := w.bus.Replay(t.Context(), bus.EventsStream, "muster.events.>")
	if err != nil {
		t.Fatal(err)
	}
	for len(last) < subjects || slices.Min(values(last)) < each-1 {
		select {
		case d := <-following.C:
			_, payload, err := d.Event()
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if _, err := fmt.Sscan(payload.(*event.WorkloadCancel).Why, &n); err != nil {
				t.Fatal(err)
			}
			if before, known := last[d.Subject]; known && n > before+1 || !known && n != 0 {
				t.Fatalf("on %s came %d after %d", d.Subject, n, before)
			}
			last[d.Subject] = max(last[d.Subject], n)
		case <-time.After(patience):
			t.Fatalf("seen up to %v", last)
		}
	}
	for s := range subjects {
		if got := w.lastCommand(t, event.DispatchSubject("c", workload.ID(fmt.Sprintf("w%d", s)))); got.Order != each-1 {
			t.Errorf("the last command of w%d is number %d, want %d", s, got.Order, each-1)
		}
	}
}

func values(m map[string]int) []int {
	var all []int
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// NATS comes back without its data: the events of the history are republished, and
// the leader hears that commands are missing.
func TestALostStreamIsFoundAndFilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, _ := w.relay(t, 1)
	<-w.found // of the start
	id := workload.ID("w1")
	for range 3 {
		w.handEvent(t, r)
		w.drained(t)
	}
	c := w.add(t, event.DispatchSubject("c", id), command(id, 1, 1))
	r.Hand([]store.Outgoing{c})
	w.drained(t)
	w.restart(t, t.TempDir())
	deadline := time.After(patience)
	for {
		select {
		case m := <-w.found:
			if !m.Distrust {
				continue
			}
		case <-deadline:
			t.Fatal("the loss of the commands was not found")
		}
		break
	}
	following, err := w.bus.Replay(t.Context(), bus.EventsStream, "muster.events.>")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		select {
		case d := <-following.C:
			if want := w.history[i].EventID; d.MessageID() != want {
				t.Errorf("event %d is %q, want %q", i, d.MessageID(), want)
			}
		case <-deadline:
			t.Fatalf("%d of 3 events came back", i)
		}
	}
}
