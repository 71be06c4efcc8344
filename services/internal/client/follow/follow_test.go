package follow_test

import (
	"context"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/internal/client/follow"
)

func publish(t *testing.T, b *bus.Bus, queue string, payload event.Payload) {
	t.Helper()
	envelope, err := event.New(event.NewID(), "test", time.Unix(1_700_000_000, 0), payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), event.EventsSubject(queue, workload.ID(payload.CloudEventSubject())), envelope); err != nil {
		t.Fatal(err)
	}
}

func changed(id workload.ID, phase workload.Phase) *event.WorkloadChanged {
	return &event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{ID: id, Queue: "q"}, Phase: phase}}
}

func TestLife(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	publish(t, b, "q", changed("one", workload.Queued))
	publish(t, b, "q", changed("one", workload.Admitted))

	life, err := follow.Start(ctx, b, "q", "one")
	if err != nil {
		t.Fatal(err)
	}
	if life.Before == nil || life.Before.Record.Phase != workload.Admitted {
		t.Errorf("before the start: %+v, want the last step, admitted", life.Before)
	}
	publish(t, b, "q", changed("two", workload.Queued)) // another's
	publish(t, b, "q", changed("one", workload.Running))
	step, err := life.Next(ctx)
	if err != nil || step.Record.Phase != workload.Running || step.Record.ID != "one" {
		t.Errorf("next: %+v, %v, want running", step.Record, err)
	}

	fresh, err := follow.Start(ctx, b, "q", "three")
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Before != nil {
		t.Errorf("an unknown workload has a past: %+v", fresh.Before)
	}
	publish(t, b, "q", &event.WorkloadRejected{Workload: "three", Queue: "q",
		Reason: workload.Reason{Kind: workload.ReasonInvalid, Message: "no head"}})
	step, err = fresh.Next(ctx)
	if err != nil || step.Record.Phase != workload.Rejected || step.Record.Reason.Message != "no head" {
		t.Errorf("next: %+v, %v, want rejected with its reason", step.Record, err)
	}
}
