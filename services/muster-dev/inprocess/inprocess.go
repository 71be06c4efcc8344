// Package inprocess runs Muster's four services, and the console, in this process, by the
// functions that their own programs call: for a laptop's stack, and for tests and benchmarks. It starts no
// server, and no part of a service runs otherwise than alone.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/tracing"
)

// The services.
const (
	Intake          = "intake"
	CapacityWatcher = "capacity-watcher"
	QueueManager    = "queue-manager"
	Dispatcher      = "dispatcher"
	// Console is not among Names: it starts once the HTTP API that it asks has an address.
	Console = "console"
)

// Names lists the services in the order of their start: who can answer before who asks.
func Names() []string { return []string{QueueManager, CapacityWatcher, Dispatcher, Intake} }

// Accounts returns the service account of each service that talks to the API server.
func Accounts() map[string]string {
	return map[string]string{CapacityWatcher: rbac.CapacityWatcher, Dispatcher: rbac.Dispatcher, Intake: rbac.Intake}
}

// Kubeconfigs writes into dir, for each service that talks to the API server, a kubeconfig
// with the credentials of its own account. It returns the files by service.
func Kubeconfigs(ctx context.Context, admin *rest.Config, dir string) (map[string]string, error) {
	files := map[string]string{}
	for name, account := range Accounts() {
		content, err := install.Kubeconfig(ctx, admin, account)
		if err != nil {
			return nil, err
		}
		files[name] = filepath.Join(dir, account+".kubeconfig")
		if err := os.WriteFile(files[name], content, 0o600); err != nil {
			return nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return files, nil
}

// Services are the services with their settings. It is safe for concurrent use.
type Services struct {
	// Logger gets what all of them log.
	Logger *zap.Logger
	// Tracer returns what makes the spans of a service; nil for none.
	Tracer func(service string) tracing.Tracer
	// Ended, unless nil, is called when a service ends without having been stopped.
	Ended func(error)

	config  Config
	mu      sync.Mutex
	running map[string]*running
}

// running is a service that runs.
type running struct {
	runtime *service.Runtime
	cancel  context.CancelFunc
	ended   chan struct{}
	err     error // may be read once ended is closed
}

// New returns the services with these settings; none runs.
func New(logger *zap.Logger, c Config) *Services {
	return &Services{Logger: logger, config: c, running: map[string]*running{}}
}

// Configure sets what services that start from now on are given.
func (s *Services) Configure(c Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = c
}

// Start starts services and returns when all are ready, or one has ended. ctx bounds the
// wait; a service runs until Stop.
func (s *Services) Start(ctx context.Context, names ...string) error {
	s.mu.Lock()
	config := s.config
	s.mu.Unlock()
	runs := make([]func(context.Context, *service.Runtime) error, len(names))
	for i, name := range names {
		run, err := config.runner(name)
		if err != nil {
			return fmt.Errorf("settings of %s: %w", name, err)
		}
		runs[i] = run
	}
	started := make([]*running, len(names))
	for i, name := range names {
		started[i] = s.launch(ctx, name, runs[i])
	}
	for i, name := range names {
		if err := started[i].awaitReady(ctx); err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
	}
	return nil
}

func (s *Services) launch(ctx context.Context, name string, run func(context.Context, *service.Runtime) error) *running {
	r := &running{runtime: service.NewRuntime(s.Logger, name), ended: make(chan struct{})}
	if s.Tracer != nil {
		r.runtime.Tracer = s.Tracer(name)
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	s.mu.Lock()
	s.running[name] = r
	s.mu.Unlock()
	go func() {
		err := run(serving, r.runtime)
		stopped := serving.Err() != nil
		switch {
		case stopped && (err == nil || errors.Is(err, context.Canceled)):
		case err == nil:
			r.err = fmt.Errorf("%s has ended on its own", name)
		default:
			r.err = fmt.Errorf("%s: %w", name, err)
		}
		close(r.ended)
		if !stopped && s.Ended != nil {
			s.Ended(r.err)
		}
	}()
	return r
}

func (r *running) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waited := make(chan error, 1)
	go func() { waited <- r.runtime.Health.WaitReady(ctx) }()
	select {
	case err := <-waited:
		return err
	case <-r.ended:
		return r.err
	}
}

// ErrStillRuns means that a service has not ended in time.
var ErrStillRuns = errors.New("the service does not stop")

// Stop stops a service and returns how it ended; a clean end is nil, and so is the stop of
// one that does not run. patience bounds the wait: afterwards the error wraps ErrStillRuns.
func (s *Services) Stop(name string, patience time.Duration) error {
	s.mu.Lock()
	r := s.running[name]
	delete(s.running, name)
	s.mu.Unlock()
	if r == nil {
		return nil
	}
	r.cancel()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(patience):
		return fmt.Errorf("stop %s within %s: %w", name, patience, ErrStillRuns)
	}
}

// Runtimes returns what the running services were given, by name.
func (s *Services) Runtimes() map[string]*service.Runtime {
	s.mu.Lock()
	defer s.mu.Unlock()
	runtimes := map[string]*service.Runtime{}
	for name, r := range s.running {
		runtimes[name] = r.runtime
	}
	return runtimes
}
