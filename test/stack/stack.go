// Package stack runs all of Muster's services in one process against real NATS,
// Postgres and Kubernetes, for tests and benchmarks: the services' own app.Run,
// nothing in place of anything.
//
// Several stacks share one dev cluster: each has nodes of its own (a label), a
// namespace and a name for the cluster of its own, and its own NATS server and
// database.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	watcher "muster.dev/muster/services/capacity-watcher/app"
	dispatcher "muster.dev/muster/services/dispatcher/app"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// poolLabel marks the nodes of one stack.
const poolLabel = "test.muster.dev/pool"

// readyTimeout bounds the start of a service.
const readyTimeout = 2 * time.Minute

// Options say what a stack has.
type Options struct {
	Cluster *devcluster.Cluster
	// DatabaseURL names an empty or migrated database, as its owner. The services
	// get a login of their own role.
	DatabaseURL string
	// Dir is for files of the stack.
	Dir string
	// Queues; empty means a queue "default" for the stack's namespace, with the
	// given rules.
	Queues []queuemanager.Queue
	Rules  workload.Rules
	// Policy is quota and the rest of it; empty means none.
	Policy quota.Config
	Logger *zap.Logger
	// NodeGrace is queue-manager's; zero means a minute.
	NodeGrace time.Duration
	// Through puts something between a service and the API server: it gets the
	// service's kubeconfig and returns the one to use; nil for nothing.
	Through func(service, kubeconfig string) (string, error)
	// Tracer returns what makes the spans of a service; nil for none.
	Tracer func(service string) tracing.Tracer
	// HTTP turns on intake's HTTP API; the zero value leaves it off.
	HTTP intake.HTTPConfig
	// AllNodes manages every node of the cluster instead of the stack's own.
	AllNodes bool
}

// Stack is a running set of services.
type Stack struct {
	Namespace string // of its own
	Pool      string // of nodes; also what the stack calls its cluster
	NATSURL   string
	Bus       *bus.Bus
	Queries   *query.Client
	Kube      kubernetes.Interface // as administrator
	Dynamic   dynamic.Interface    // as administrator
	Metadata  metadata.Interface   // as administrator

	options     Options
	server      *natsserver.Server
	dropLogin   func(context.Context) error // nil before it is made
	kubeconfigs map[string]string
	mu          sync.Mutex
	running     map[string]*running
}

// The services.
const (
	Intake          = "intake"
	CapacityWatcher = "capacity-watcher"
	QueueManager    = "queue-manager"
	Dispatcher      = "dispatcher"
)

// Services lists them in the order of their start.
func Services() []string { return []string{QueueManager, CapacityWatcher, Dispatcher, Intake} }

// running is a service that runs.
type running struct {
	runtime *service.Runtime
	cancel  context.CancelFunc
	ended   chan error
}

// Start starts a stack; Stop ends it.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	pool := "s-" + strings.ReplaceAll(uuid.NewString(), "-", "")[:10]
	s := &Stack{Namespace: pool, Pool: pool, options: o, kubeconfigs: map[string]string{}, running: map[string]*running{}}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if s.server, err = natsserver.Start(filepath.Join(o.Dir, "nats"), -1); err != nil {
		return nil, err
	}
	s.NATSURL = s.server.URL()
	if s.Bus, err = bus.Connect(ctx, bus.Options{URL: s.NATSURL, Name: "test", Logger: o.Logger}); err != nil {
		return nil, err
	}
	s.Queries = query.NewClient(s.Bus.Conn())
	if err := s.prepareCluster(ctx); err != nil {
		return nil, err
	}
	if err := queuemanager.Migrate(ctx, o.DatabaseURL, zap.NewNop()); err != nil {
		return nil, err
	}
	if s.options.DatabaseURL, s.dropLogin, err = postgres.Login(ctx, o.DatabaseURL, queuemanager.DatabaseRole); err != nil {
		return nil, err
	}
	for _, name := range Services() {
		if err := s.StartService(ctx, name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// prepareCluster installs rights and namespaces and gets the services' own
// credentials.
func (s *Stack) prepareCluster(ctx context.Context) error {
	admin, err := clientcmd.BuildConfigFromFlags("", s.options.Cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", s.options.Cluster.Kubeconfig, err)
	}
	admin.QPS = -1
	if s.Kube, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}
	if s.Metadata, err = metadata.NewForConfig(admin); err != nil {
		return err
	}
	if s.Dynamic, err = dynamic.NewForConfig(admin); err != nil {
		return err
	}
	if len(s.options.Queues) == 0 {
		rules := s.options.Rules
		s.options.Queues = []queuemanager.Queue{{
			Name: "default", Namespaces: []string{s.Namespace}, Rules: rules,
			PodPolicy: rules.Pods, ObjectPolicy: rules.Objects, Submitters: rules.Submitters, Identities: rules.Identities, Limits: rules.Limits, StrayPods: rules.Strays,
		}}
	}
	if err := install.Install(ctx, admin, []string{s.Pool}, s.namespaces()); err != nil {
		return err
	}
	for _, name := range []string{CapacityWatcher, Dispatcher, Intake} {
		if s.kubeconfigs[name], err = writeKubeconfig(ctx, admin, s.options.Dir, name); err != nil {
			return err
		}
		if s.options.Through != nil {
			if s.kubeconfigs[name], err = s.options.Through(name, s.kubeconfigs[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespaces lists those of the stack, each once.
func (s *Stack) namespaces() []string {
	namespaces := []string{s.Namespace}
	for _, queue := range s.options.Queues {
		namespaces = append(namespaces, queue.Namespaces...)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

func writeKubeconfig(ctx context.Context, admin *rest.Config, dir, name string) (string, error) {
	content, err := install.Kubeconfig(ctx, admin, "muster-"+name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	return path, nil
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

// Secrets returns what the services prove with who they are, by service.
func (s *Stack) Secrets() (map[string]string, error) {
	secrets := map[string]string{}
	parsed, err := url.Parse(s.options.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the URL of the services' login: %w", err)
	}
	secrets[QueueManager], _ = parsed.User.Password()
	for name, file := range s.kubeconfigs {
		config, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return nil, fmt.Errorf("read kubeconfig of %s: %w", name, err)
		}
		secrets[name] = config.BearerToken
	}
	return secrets, nil
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

// AddNodes adds nodes to the stack's pool, named after it, with the given
// allocatable resources, such as "nvidia.com/gpu=8".
func (s *Stack) AddNodes(ctx context.Context, group string, count int, resources ...string) error {
	command := []string{
		"add", "--pattern", fmt.Sprintf("%s-%s-{0}", s.Pool, group), "--count", fmt.Sprint(count), "--label", poolLabel + "=" + s.Pool,
	}
	for _, resource := range resources {
		command = append(command, "--resource", resource)
	}
	return s.options.Cluster.Node(ctx, command...)
}

// NodeName returns the name of a node that AddNodes made.
func (s *Stack) NodeName(group string, i int) string {
	return fmt.Sprintf("%s-%s-%d", s.Pool, group, i)
}

// Node runs a node command of the dev cluster, such as "break", NAME.
func (s *Stack) Node(ctx context.Context, command ...string) error {
	return s.options.Cluster.Node(ctx, command...)
}

// Subscribed reports whether a client of the stack's NATS server subscribes to exactly this
// subject.
func (s *Stack) Subscribed(subject string) bool { return s.server.Subscribed(subject) }

// Stop ends all services, then NATS. The namespace stays; the cluster goes with
// its last user.
func (s *Stack) Stop() {
	for _, name := range Services() {
		if err := s.StopService(name); err != nil {
			s.options.Logger.Warn("stopping", zap.Error(err))
		}
	}
	if s.dropLogin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		if err := s.dropLogin(ctx); err != nil {
			s.options.Logger.Warn("stopping", zap.Error(err))
		}
	}
	if s.Bus != nil {
		s.Bus.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
}
