package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/test/stack"
)

// large measures one gang of many pods: from its submission until it is admitted,
// its object exists, and all its pods are ready on their nodes. KubeRay makes the
// pods; how long it takes for that is part of the last.
func large(ctx context.Context, o options) error {
	s, err := open(ctx, o, "large")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	following, err := s.stack.Bus.Follow(ctx, bus.EventsStream, bus.EventsSubject("default", "*"))
	if err != nil {
		return err
	}
	began := time.Now()
	published, err := s.stack.Bus.PublishAsync(bus.SubmitSubject("default"), event.Envelope{
		SpecVersion: event.SpecVersion, ID: "large", Source: "bench", Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster("large", o.large-1, 1)),
	})
	if err == nil {
		err = published.Wait(ctx)
	}
	if err != nil {
		return err
	}
	fmt.Printf("One gang of %d pods, from its submission\n", o.large)
	seen := map[workload.Phase]bool{}
	for d := range following.C {
		_, payload, err := d.Event()
		if err != nil {
			return err
		}
		changed, ok := payload.(*event.WorkloadChanged)
		if !ok {
			return fmt.Errorf("the gang was refused: %s", d.Data)
		}
		if !seen[changed.Phase] {
			seen[changed.Phase] = true
			fmt.Printf("  %-12s %6.2f s\n", changed.Phase, time.Since(began).Seconds())
		}
		if changed.Phase == workload.Running {
			return nil
		}
	}
	return fmt.Errorf("the gang did not come to run: %w", ctx.Err())
}
