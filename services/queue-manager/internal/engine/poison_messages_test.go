package engine

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/testkit/bustest"
)

// A message on which the code fails ends the term, and the next one gives it up
// and keeps it with the reason.
func TestAMessageOnWhichTheCodeFails(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	if err := b.Publish(t.Context(), event.WorkloadSubject("q"), event.Envelope{SpecVersion: "1.0", ID: "1", Source: "test", Type: "test"}); err != nil {
		t.Fatal(err)
	}
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	d := <-work
	step := &Step{
		State: state.New(1, state.Stored{}), Archive: nothingKnown{}, Logger: zap.NewNop(),
		Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable, DeadLetter: b.PublishDeadLetter,
	}
	// No message is known on which the state fails, so it is given none at all.
	if _, err := step.applyMessage(received{Delivery: d, payload: (*event.WorkloadSubmitted)(nil)}, nil, time.Now()); err == nil {
		t.Fatal("the failure is not noticed")
	}
	if _, err := step.applyBatch(t.Context(), []bus.Delivery{d}, time.Now()); err != nil {
		t.Fatalf("it fails the next term, too: %v", err)
	}
	dead, err := b.DeadLetters(t.Context())
	if err != nil || len(dead) != 1 || dead[0].Subject != event.WorkloadSubject("q") {
		t.Errorf("kept is %+v, %v", dead, err)
	}
}

// A stream that is made once more numbers its messages from 1: what was given up
// before is recognised by its content, not by its place.
func TestPoisonIsKnownByItsContent(t *testing.T) {
	t.Parallel()
	known := poison{}
	bad := bus.Delivery{Subject: "s", Data: []byte("bad"), Sequence: 1}
	known.add(bad, "it fails")
	if _, is := known.cause(bus.Delivery{Subject: "s", Data: []byte("good"), Sequence: 1}); is {
		t.Error("another message in the same place is given up")
	}
	bad.Sequence = 7
	if reason, is := known.cause(bad); !is || reason != "it fails" {
		t.Error("the same message in another place is not known")
	}
}

// nothingKnown is the ledger of a state that is given nothing.
type nothingKnown struct{}

func (nothingKnown) Known(context.Context, []workload.ID) (map[workload.ID]state.Known, error) {
	return map[workload.ID]state.Known{}, nil
}
