package relay_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// The backlog is what was handed over and is not removed from the outbox, which comes after the stream
// of commands has it.
func TestTheBacklogIsWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	arrived := make(chan struct{})
	w.removing = func() error { <-arrived; return nil }
	r, _ := w.relay(t, 1)
	for i := range 3 {
		id := workload.ID(fmt.Sprintf("w%d", i))
		r.Hand([]store.Outgoing{w.add(t, event.DispatchSubject("c", id), command(id, 1, int64(i)))})
	}
	if got := r.Backlog(); got != 3 {
		t.Errorf("the backlog of three commands is %d", got)
	}
	close(arrived)
	deadline := time.After(patience)
	for r.Backlog() > 0 {
		select {
		case <-r.Moved():
		case <-deadline:
			t.Fatalf("the backlog is %d still", r.Backlog())
		}
	}
}
