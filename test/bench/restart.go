package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/bench/figures"
	"muster.dev/muster/test/stack"
)

const (
	// warmWithin is how long the dispatcher has, after a restart of the API server.
	warmWithin = 15 * time.Second
	// restartTimeout bounds the section.
	restartTimeout = 10 * time.Minute
)

// restart measures the first creation of a RayCluster after the API server has begun again, and the
// second: without the dispatcher, which has the API server read its policies' schemas, and with it.
func restart(ctx context.Context, o options) error {
	s, err := open(ctx, o, "restart")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return err
	}
	if _, err := s.submit("known"); err != nil { // so the dispatcher knows a namespace
		return err
	}
	if _, err := seen.await(ctx, []string{"known"}); err != nil {
		return err
	}
	fmt.Println(figures.Header("A RayCluster created by hand after a restart of the API server"))
	fmt.Printf("  %-28s %12s %12s\n", "", "the first", "the second")
	for i, without := range []bool{true, false} {
		name := "with the dispatcher"
		if without {
			name = "without the dispatcher"
			if err := s.stack.StopService(stack.Dispatcher); err != nil {
				return err
			}
		} else if err := s.stack.StartService(ctx, stack.Dispatcher); err != nil {
			return err
		}
		if err := s.restartAPIServer(ctx); err != nil {
			return err
		}
		first, err := s.createByHand(ctx, fmt.Sprintf("first-%d", i), 1)
		if err != nil {
			return err
		}
		second, err := s.createByHand(ctx, fmt.Sprintf("second-%d", i), 1)
		if err != nil {
			return err
		}
		fmt.Printf("  %-28s %12s %12s\n", name, figures.Millis(first), figures.Millis(second))
	}
	fmt.Println()
	return nil
}

// restartAPIServer restarts the control plane, with what it has, and waits until it is warm.
func (s *site) restartAPIServer(ctx context.Context) error {
	if err := s.cluster.SaveEtcd(ctx); err != nil {
		return err
	}
	if err := s.cluster.RestoreEtcd(ctx); err != nil {
		return err
	}
	for {
		_, err := s.kube.CoreV1().Namespaces().Get(ctx, s.namespace, metav1.GetOptions{})
		if err == nil {
			return pause.For(ctx, warmWithin)
		}
		if paused := pause.For(ctx, 100*time.Millisecond); paused != nil {
			return fmt.Errorf("wait for the API server: %w: %w", paused, err)
		}
	}
}
