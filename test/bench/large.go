package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/bench/figures"
	"muster.dev/muster/test/stack"
)

// large measures one gang of many pods: from its submission until it is admitted,
// its object exists, and all its pods are ready on their nodes; and when its pods
// were made, by KubeRay, had their gates lifted, by Muster, were bound, by the
// scheduler, and ready. Then it measures the same RayCluster created by hand.
func large(ctx context.Context, o options) error {
	s, err := open(ctx, o, "large")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	const name = "large"
	pods, err := s.podTimes(ctx, name, o.large)
	if err != nil {
		return err
	}
	following, err := s.stack.Bus.Follow(ctx, bus.EventsStream, event.EventsSubject("default", "*"))
	if err != nil {
		return err
	}
	began := time.Now()
	published, err := s.stack.Bus.PublishAsync(event.SubmitSubject("default"), event.Envelope{
		SpecVersion: event.SpecVersion, ID: name, Source: "bench", Type: event.SubmitType,
		DataContentType: "application/json", Data: json.RawMessage(stack.RayCluster(name, o.large-1, 1)),
	})
	if err == nil {
		err = published.Wait(ctx)
	}
	if err != nil {
		return err
	}
	fmt.Println(figures.Header(fmt.Sprintf("One gang of %d pods, from its submission", o.large)))
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
			break
		}
	}
	select {
	case times := <-pods:
		times.print(began)
	case <-ctx.Done():
		return fmt.Errorf("the gang did not come to run: %w", ctx.Err())
	}
	return s.largeByHand(ctx, o.large)
}

// largeByHand measures the same RayCluster without Muster: no gates, and the
// scheduler chooses the nodes.
func (s *site) largeByHand(ctx context.Context, size int) error {
	const name = "by-hand"
	pods, err := s.podTimes(ctx, name, size)
	if err != nil {
		return err
	}
	header, began := figures.Header("The same RayCluster, created by hand"), time.Now()
	if _, err := s.createByHand(ctx, name, size-1); err != nil {
		return err
	}
	select {
	case times := <-pods:
		fmt.Println(header)
		times.print(began)
	case <-ctx.Done():
		return fmt.Errorf("the cluster created by hand did not come to run: %w", ctx.Err())
	}
	return nil
}
