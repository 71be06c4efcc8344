package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

func (s *soak) submitAll(ctx context.Context) error {
	tick := time.NewTicker(s.lasts / time.Duration(s.gangs))
	defer tick.Stop()
	for i := range s.gangs {
		name, manifest := s.draw(i)
		published, err := s.Bus.PublishAsync(event.SubmitSubject("default"), event.Envelope{
			SpecVersion: event.SpecVersion, ID: name, Source: "soak", Type: event.SubmitType,
			DataContentType: "application/json", Data: json.RawMessage(manifest),
		})
		if err == nil {
			err = published.Wait(ctx)
		}
		if err != nil {
			return fmt.Errorf("submit %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// draw returns the next gang: mostly jobs, some of which fail or are retried by
// KubeRay, and clusters that end with their time.
func (s *soak) draw(i int) (name, manifest string) {
	workers, gpus := 1+s.random.IntN(4), s.random.IntN(3)
	if s.random.IntN(20) == 0 {
		workers = 16
	}
	if s.random.IntN(10) < 3 {
		name = fmt.Sprintf("cluster-%d", i)
		manifest = stack.Annotated(stack.RayCluster(name, workers, gpus), "muster.dev/max-run-time", fmt.Sprintf("%ds", 1+s.random.IntN(10)))
	} else {
		name = fmt.Sprintf("job-%d", i)
		outcome := []string{"succeeded", "succeeded", "succeeded", "succeeded", "failed", "failed,succeeded"}[s.random.IntN(6)]
		manifest = stack.RayJob(name, workers, gpus, outcome, fmt.Sprintf("%ds", 1+s.random.IntN(5)))
		if outcome == "failed,succeeded" {
			manifest = stack.With(manifest, map[string]any{"backoffLimit": 1})
		}
	}
	if s.random.IntN(4) == 0 {
		manifest = stack.Annotated(manifest, "muster.dev/on-pod-loss", "evict")
	}
	return name, manifest
}

// stuck is after how long in which none of the gangs has ended, and nothing disturbs
// them, those that are left will not. How long all take depends on the machine.
const stuck = 90 * time.Second

func (s *soak) awaitEnds(ctx context.Context) error {
	lastEnd := time.Now()
	poll := time.NewTicker(200 * time.Millisecond)
	defer poll.Stop()
	var open int
	var first workload.Record
	for {
		now, one, err := s.open(ctx)
		if err == nil && now == 0 {
			return nil
		}
		if err == nil {
			if open != now {
				lastEnd = time.Now()
			}
			open, first = now, one
		}
		if time.Since(lastEnd) > stuck {
			return fmt.Errorf("%w: %d gangs do not end, none of them for %s, such as %s", errPromise, open, stuck, s.describe(first))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}

// describe describes a workload that does not end.
func (s *soak) describe(w workload.Record) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	text := fmt.Sprintf("%s %s (%s), %s, attempt %d, reason %+v, places %v\n", w.Kind, w.Name, w.ID, w.Phase, w.Attempt, w.Reason, w.Placements)
	pods, err := s.Kube.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "muster.dev/workload=" + string(w.ID)})
	if err != nil {
		return text + err.Error()
	}
	for _, p := range pods.Items {
		text += fmt.Sprintf("  pod %s: %s on %q, sent to %v, gates %v, deleted %v\n", p.Name, p.Status.Phase, p.Spec.NodeName,
			p.Spec.NodeSelector, p.Spec.SchedulingGates, p.DeletionTimestamp)
	}
	for _, resource := range []string{"rayclusters", "rayjobs"} {
		objects, err := s.Dynamic.Resource(ray.Resource(resource)).Namespace(s.Namespace).
			List(ctx, metav1.ListOptions{LabelSelector: "muster.dev/workload=" + string(w.ID)})
		if err != nil {
			return text + err.Error()
		}
		for _, o := range objects.Items {
			status, _ := json.Marshal(o.Object["status"])
			text += fmt.Sprintf("  %s %s, attempt %s, deleted %v: %s\n", resource, o.GetName(), o.GetLabels()["muster.dev/attempt"], o.GetDeletionTimestamp(), status)
		}
	}
	return text
}

// open counts the workloads that have not ended or hold capacity.
func (s *soak) open(ctx context.Context) (open int, first workload.Record, err error) {
	known := 0
	for after := int64(0); ; {
		answer, err := s.Queries.Workloads(ctx, query.WorkloadsRequest{After: after})
		if err != nil {
			return 0, first, err
		}
		for _, w := range answer.Workloads {
			known++
			if !w.Phase.Final() || w.Holding {
				if open++; open == 1 {
					first = w
				}
			}
		}
		if after = answer.Next; after == 0 {
			return open + s.gangs - known, first, nil
		}
	}
}
