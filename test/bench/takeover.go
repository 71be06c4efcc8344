package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/test/bench/figures"
	"muster.dev/muster/test/stack"
)

// takeOverTimeout bounds one take-over.
const takeOverTimeout = 2 * time.Minute

// takeOvers measures, for each service of which one process acts, how long nothing acts after that
// process was killed (SIGKILL): until the process that stood by has done the next thing. Of
// dispatcher and queue-manager that is a RayCluster of a gang that was submitted meanwhile; of
// capacity-watcher the message about a node that has changed meanwhile.
func takeOvers(ctx context.Context, o options) error {
	s, err := open(ctx, o, "takeover")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithCancel(ctx) // ends the watches before their servers
	defer cancel()
	created, err := s.creations(ctx)
	if err != nil {
		return err
	}
	observed, err := s.observations(ctx)
	if err != nil {
		return err
	}
	fmt.Println(figures.Header(fmt.Sprintf("A service is killed, until the one that stood by acts, %d times each", o.takeOvers)))
	fmt.Printf("  %-18s %10s %10s   %s\n", "", "median", "worst", "half of them")
	for _, of := range []struct {
		service string
		acts    func(context.Context, string) error
	}{{stack.Dispatcher, created}, {stack.CapacityWatcher, observed}, {stack.QueueManager, created}} {
		took, err := s.takeOversOf(ctx, of.service, o.takeOvers, of.acts)
		if err != nil {
			return fmt.Errorf("%s: %w", of.service, err)
		}
		fmt.Printf("  %-18s %10s %10s   %s\n", of.service, figures.Millis(figures.Quantile(took, 0.5)), figures.Millis(figures.Quantile(took, 1)), figures.Middle(took))
	}
	fmt.Println()
	return nil
}

// takeOversOf replaces a service by processes, kills the one that acts, again and again, and puts
// the service back. acts returns when something with that name has been done.
func (s *site) takeOversOf(ctx context.Context, service string, count int, acts func(context.Context, string) error) (took []time.Duration, err error) {
	if err := s.stack.StopService(service); err != nil {
		return nil, err
	}
	holder, err := s.spawn(ctx, service)
	if err != nil {
		return nil, err
	}
	defer func() { holder.kill() }()
	for i := range count {
		next, err := s.spawn(ctx, service)
		if err != nil {
			return nil, err
		}
		before, after := fmt.Sprintf("%s-before-%d", service, i), fmt.Sprintf("%s-after-%d", service, i)
		if err := acts(ctx, before); err != nil {
			next.kill()
			return nil, fmt.Errorf("before take-over %d: %w", i+1, err)
		}
		began := time.Now()
		holder.kill()
		holder = next
		if err := acts(ctx, after); err != nil {
			return nil, fmt.Errorf("take-over %d: %w", i+1, err)
		}
		took = append(took, time.Since(began))
	}
	holder.kill()
	return took, s.stack.StartService(ctx, service)
}

// creations returns a function that submits a gang and returns when its RayCluster is there.
func (s *site) creations(ctx context.Context) (func(context.Context, string) error, error) {
	seen, err := s.watch(ctx)
	return func(ctx context.Context, name string) error {
		ctx, cancel := context.WithTimeout(ctx, takeOverTimeout)
		defer cancel()
		published, err := s.submit(name)
		if err == nil {
			err = published.Wait(ctx)
		}
		if err == nil {
			_, err = seen.await(ctx, []string{name})
		}
		return err
	}, err
}

// roundLabel is a label of a node, by which its messages are told apart.
const roundLabel = "bench.muster.dev/round"

// observations returns a function that changes a node and returns when the message about it is
// there.
func (s *site) observations(ctx context.Context) (func(context.Context, string) error, error) {
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return nil, fmt.Errorf("list nodes: there are none in fleet of cluster %q", s.stack.Pool)
	}
	node := nodes.Items[0].Name
	following, err := s.stack.Bus.Follow(ctx, bus.CapacityStream, event.NodeSubject(s.stack.Pool, node))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, name string) error {
		ctx, cancel := context.WithTimeout(ctx, takeOverTimeout)
		defer cancel()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{roundLabel: name}}})
		if err != nil {
			return fmt.Errorf("encode the patch of node %q: %w", node, err)
		}
		if _, err := s.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("label node %q: %w", node, err)
		}
		for {
			select {
			case <-ctx.Done():
				return fmt.Errorf("no message about node %q with label %s=%s: %w", node, roundLabel, name, ctx.Err())
			case delivery, open := <-following.C:
				if !open {
					return fmt.Errorf("follow node %q: the messages have ended", node)
				}
				_, payload, err := delivery.Event()
				if err != nil {
					return err
				}
				if observed, is := payload.(*event.NodeObserved); is && observed.Node.Labels[roundLabel] == name {
					return nil
				}
			}
		}
	}, nil
}
