package bus_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A cancellation is published on the subject of its queue. Publish returns when NATS has
// stored it, and Work delivers it until it is acknowledged.
func ExampleBus_Publish() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := natsserver.Start(dir, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()
	b, err := bus.Connect(ctx, bus.Options{URL: server.URL(), Name: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	if err := b.EnsureStreams(ctx); err != nil {
		fmt.Println(err)
		return
	}
	cancellation, err := event.New(event.NewID(), "example", time.Now(), &event.WorkloadCancel{Workload: workload.ID("w-1"), Why: "superseded"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := b.Publish(ctx, event.WorkloadSubject("research"), cancellation); err != nil {
		fmt.Println(err)
		return
	}
	deliveries, err := b.Work(ctx, bus.Work{Stream: bus.WorkloadStream, Durable: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	delivery := <-deliveries
	_, payload, err := delivery.Event()
	if err != nil {
		fmt.Println(err)
		return
	}
	delivery.Ack()
	fmt.Println(delivery.Subject, payload.(*event.WorkloadCancel).Why)
	// Output: muster.workload.research superseded
}
