package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
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
				s.observe(payload)
			}
		}
	}()
	return s, nil
}

func (s *soak) close() {
	s.stop()
	s.Stack.Stop()
}

// observe notes an event of a workload.
func (s *soak) observe(payload event.Payload) {
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
