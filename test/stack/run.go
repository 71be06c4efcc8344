package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service"
	watcher "muster.dev/muster/services/capacity-watcher/app"
	dispatcher "muster.dev/muster/services/dispatcher/app"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// running is a service that runs.
type running struct {
	runtime *service.Runtime
	cancel  context.CancelFunc
	ended   chan error
}

// StartService starts a service and waits until it is ready.
func (s *Stack) StartService(ctx context.Context, name string) error {
	runtime := service.NewRuntime(s.options.Logger, name)
	if s.options.Tracer != nil {
		runtime.Tracer = s.options.Tracer(name)
	}
	run, err := s.runner(name, runtime)
	if err != nil {
		return err
	}
	serviceCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{runtime: runtime, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- run(serviceCtx) }()
	s.mu.Lock()
	s.running[name] = r
	s.mu.Unlock()
	ready, done := context.WithTimeout(ctx, readyTimeout)
	defer done()
	waited := make(chan error, 1)
	go func() { waited <- runtime.Health.WaitReady(ready) }()
	select {
	case err := <-r.ended:
		r.ended <- err // for StopService
		return fmt.Errorf("%s ended at its start: %w", name, err)
	case err := <-waited:
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// runner returns the run of a service with its settings.
func (s *Stack) runner(name string, runtime *service.Runtime) (func(context.Context) error, error) {
	selector := poolLabel + "=" + s.Pool
	if s.options.AllNodes {
		selector = ""
	}
	switch name {
	case Intake:
		config := &intake.Config{
			NATS: bus.Settings{URL: s.NATSURL}, Cluster: s.Pool, Kubeconfig: s.kubeconfigs[name], KubeNamespaces: strings.Join(s.namespaces(), ","),
			HTTP: s.options.HTTP,
		}
		return func(ctx context.Context) error { return intake.Run(ctx, config, runtime) }, config.Validate()
	case CapacityWatcher:
		config := &watcher.Config{
			NATS: bus.Settings{URL: s.NATSURL}, Cluster: s.Pool, Kubeconfig: s.kubeconfigs[name], NodeSelector: selector, ResyncEvery: time.Minute,
		}
		return func(ctx context.Context) error { return watcher.Run(ctx, config, runtime) }, config.Validate()
	case Dispatcher:
		config := &dispatcher.Config{NATS: bus.Settings{URL: s.NATSURL}, Cluster: s.Pool, Kubeconfig: s.kubeconfigs[name]}
		return func(ctx context.Context) error { return dispatcher.Run(ctx, config, runtime) }, config.Validate()
	case QueueManager:
		config := &queuemanager.Config{
			NATS: bus.Settings{URL: s.NATSURL}, DatabaseURL: s.options.DatabaseURL, Queues: s.options.Queues, Policy: s.options.Policy, NodeGrace: cmp.Or(s.options.NodeGrace, time.Minute),
			EstimateInterval: time.Second,
		}
		return func(ctx context.Context) error { return queuemanager.Run(ctx, config, runtime) }, config.Validate()
	}
	return nil, fmt.Errorf("there is no service %q", name)
}

// Runtimes returns what the running services were given, by name.
func (s *Stack) Runtimes() map[string]*service.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	runtimes := map[string]*service.Runtime{}
	for name, r := range s.running {
		runtimes[name] = r.runtime
	}
	return runtimes
}

// StopService stops a service and returns how it ended; a clean stop is nil.
func (s *Stack) StopService(name string) error {
	s.mu.Lock()
	r := s.running[name]
	delete(s.running, name)
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.cancel()
	if err := <-r.ended; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s ended with: %w", name, err)
	}
	return nil
}
