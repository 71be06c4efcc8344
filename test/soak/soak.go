package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/recorder"
	"muster.dev/muster/test/stack"
)

// soak is a run.
type soak struct {
	options
	*stack.Stack
	recorder *recorder.Recorder
	random   *rand.Rand // of the submissions
	stop     context.CancelFunc

	mu      sync.Mutex
	life    map[workload.ID]workload.Record // as told last
	plans   map[recorder.Binding]bool       // places that were told
	figures figures
}

// rules are short, so that everything that can happen does. The ready deadline is
// long enough for a busy machine: were it too short for most gangs, each would be
// started again and again, and make the others late.
func rules() workload.Rules {
	seconds := func(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }
	requeues := 100
	return workload.Rules{
		Life:     workload.Life{ReadyDeadline: seconds(60), CheckpointGrace: seconds(1)},
		Requeues: &requeues, BackoffFirst: seconds(1), BackoffMost: seconds(4), ForceAfter: seconds(2), KeepFinished: seconds(5),
	}
}

const group = "gpu" // of the nodes

func newSoak(ctx context.Context, o options, p parts) (*soak, error) {
	s := &soak{
		options: o, random: rand.New(rand.NewPCG(o.seed, 1)),
		life: map[workload.ID]workload.Record{}, plans: map[recorder.Binding]bool{}, figures: newFigures(),
	}
	var err error
	s.Stack, err = stack.Start(ctx, stack.Options{
		Cluster: p.cluster, DatabaseURL: p.databaseURL, Dir: p.dir, Logger: p.logger, Rules: rules(), NodeGrace: 2 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	var watching context.Context
	watching, s.stop = context.WithCancel(ctx)
	if s.recorder, err = recorder.Start(watching, s.Kube); err == nil {
		err = s.AddNodes(ctx, group, o.nodes, "cpu=8", "memory=64Gi", "nvidia.com/gpu=4")
	}
	if err != nil {
		s.close()
		return nil, err
	}
	following, err := s.Bus.Follow(watching, bus.EventsStream, "muster.events.*.*")
	if err != nil {
		s.close()
		return nil, err
	}
	go func() {
		for d := range following.C {
			if _, payload, err := d.Event(); err == nil {
				s.told(payload)
			}
		}
	}()
	return s, nil
}

func (s *soak) close() {
	s.stop()
	s.Stack.Stop()
}

// told takes in what Muster says of a workload.
func (s *soak) told(payload event.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, ok := payload.(*event.WorkloadChanged)
	if !ok {
		if rejected, ok := payload.(*event.WorkloadRejected); ok {
			s.figures.faults = append(s.figures.faults, "rejected: "+rejected.Reason.Message)
		}
		return
	}
	before := s.life[changed.ID]
	s.life[changed.ID] = changed.Record
	for _, p := range changed.Placements {
		s.plans[recorder.Binding{Workload: string(changed.ID), Attempt: fmt.Sprint(changed.Attempt), PodSet: p.PodSet, Node: p.Node}] = true
	}
	switch pods := changed.Pods() - before.Pods(); {
	case changed.Phase == workload.Running && before.Phase == workload.Running && pods > 0:
		s.figures.resized["grown"]++
	case changed.Phase == workload.Running && before.Phase == workload.Running && pods < 0:
		s.figures.resized["shrunk"]++
	case changed.Phase == workload.Evicting && before.Phase != workload.Evicting:
		s.figures.evictions[changed.Reason.Kind]++
	case changed.Phase == workload.Running && changed.Reason != nil && (before.Reason == nil || before.Reason.Message != changed.Reason.Message):
		s.figures.healings[changed.Reason.Kind]++
	}
}

// run soaks: gangs come in even steps while the nemesis is at work, then all that
// disturbs is taken away and every gang must come to its end.
func (s *soak) run(ctx context.Context) (*figures, error) {
	defer s.close()
	began := time.Now()
	nemesis := &nemesis{soak: s, random: rand.New(rand.NewPCG(s.seed, 2))}
	disturbing, calm := context.WithCancel(ctx)
	var disturbed sync.WaitGroup
	disturbed.Go(func() { nemesis.run(disturbing) })
	err := s.submitAll(ctx)
	calm()
	disturbed.Wait()
	if err != nil {
		return &s.figures, err
	}
	if err := nemesis.repair(ctx); err != nil {
		return &s.figures, err
	}
	s.figures.came = time.Since(began)
	s.figures.deeds = nemesis.deeds
	stuck := s.awaitEnds(ctx)
	s.figures.took = time.Since(began)
	return &s.figures, errors.Join(stuck, s.check(ctx))
}

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

// describe tells of a workload that does not end.
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
		objects, err := s.Dynamic.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: resource}).Namespace(s.Namespace).
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
