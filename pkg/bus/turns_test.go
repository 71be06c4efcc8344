package bus_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestManySubjectsTakeTurns: every subject is read, the last by name, too, although each
// keeps a message that is not settled, and there are three times as many as are read at
// once.
func TestManySubjectsTakeTurns(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	const queues = 400
	waiting := make([]bus.Published, queues)
	for i := range waiting {
		var err error
		subject := event.SubmitSubject(fmt.Sprintf("queue-%03d", i))
		if waiting[i], err = b.PublishAsync(subject, event.Envelope{SpecVersion: "1.0", ID: subject, Source: "test", Type: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range waiting {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test", AckWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	seen, patience := map[string]bool{}, time.After(time.Minute)
	for len(seen) < queues {
		select {
		case d := <-work:
			seen[d.Subject] = true
		case <-patience:
			t.Fatalf("%d of %d subjects were read", len(seen), queues)
		}
	}
}
