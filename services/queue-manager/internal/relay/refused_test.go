package relay_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// A message that cannot be removed from the outbox keeps no other one there, and none is
// removed before the stream's watermark has passed it. The next term publishes it once
// more, maybe behind a later one, and has the present command of its workload said again.
func TestAMessageThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.removed = func(m store.Outgoing) {
		if last := w.marks[bus.DispatchStream].Last; last < uint64(m.Seq) {
			t.Errorf("message %d is removed while the watermark is %d", m.Seq, last)
		}
	}
	const messages, stuck = 9, 4
	subject := func(i int) string { return event.DispatchSubject("c", workload.ID(fmt.Sprintf("w%d", i))) }
	for i := range messages {
		w.add(t, subject(i), command(workload.ID(fmt.Sprintf("w%d", i)), 1, int64(i)))
	}
	w.stuck = []int64{stuck + 1} // they count from 1
	for term := range 2 {
		_, ended := w.relay(t, 1)
		select {
		case m := <-w.missing:
			for i := range messages {
				if m.Present[subject(i)] == (i == stuck) {
					t.Errorf("term %d: that %s has its last command is reported as %t", term, subject(i), i != stuck)
				}
			}
		case err := <-ended:
			t.Fatalf("term %d ended: %v", term, err)
		}
		w.mu.Lock()
		if len(w.unsent) != 1 || w.unsent[0].Seq != w.stuck[0] {
			t.Errorf("term %d: in the outbox are %v", term, w.unsent)
		}
		w.mu.Unlock()
	}
}

// What a stream has had cannot be remembered: messages leave all the same.
func TestAMarkThatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.marking = &pgconn.PgError{Code: "XX123"}
	r, ended := w.relay(t, 1)
	for range 3 {
		w.tell(t, r)
		w.drained(t)
	}
	select {
	case err := <-ended:
		t.Errorf("the term ended: %v", err)
	default:
	}
	w.mu.Lock()
	w.marking = nil
	w.mu.Unlock()
	w.tell(t, r)
	w.drained(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.marks[bus.EventsStream].Last == 0 {
		t.Error("the mark is not stored later")
	}
}
