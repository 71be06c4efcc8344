package stack

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
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
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	intake "muster.dev/muster/services/intake/app"
	"muster.dev/muster/services/muster-dev/inprocess"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// readyTimeout bounds the start of a service.
const readyTimeout = 2 * time.Minute

// Options are what a stack has.
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
	// MovingQueue, when it is not empty, is one more queue of the stack's namespace, whose
	// objects move.
	MovingQueue string
	// Policy is quota and the rest of it; empty means none.
	Policy quota.Config
	Logger *zap.Logger
	// NodeGrace is queue-manager's; zero means a minute.
	NodeGrace time.Duration
	// ClusterSilence is queue-manager's; zero means its default.
	ClusterSilence time.Duration
	// Permission is the dispatchers'; zero means their default.
	Permission time.Duration
	// LookForKinds is intake's; zero means its default.
	LookForKinds time.Duration
	// Through puts something between a service and the API server: it gets the
	// service's kubeconfig and returns the one to use; nil for nothing.
	Through func(service, kubeconfig string) (string, error)
	// Tracer returns what makes the spans of a service; nil for none.
	Tracer func(service string) tracing.Tracer
	// HTTP turns on intake's HTTP API; the zero value leaves it off.
	HTTP intake.HTTPConfig
	// Installed: the cluster has what all stacks share, such as roles and admission policies,
	// by install.Install. Start adds what is of the stack's own names.
	Installed bool
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
	services    *inprocess.Services // nil before they have their settings
}

// The services.
const (
	Intake          = inprocess.Intake
	CapacityWatcher = inprocess.CapacityWatcher
	QueueManager    = inprocess.QueueManager
	Dispatcher      = inprocess.Dispatcher
)

// Services lists them in the order of their start.
func Services() []string { return inprocess.Names() }

// Start starts a stack; Stop ends it.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	pool := "s-" + strings.ReplaceAll(uuid.NewString(), "-", "")[:10]
	s := &Stack{Namespace: pool, Pool: pool, options: o}
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
	s.services = inprocess.New(o.Logger, s.configuration())
	s.services.Tracer = o.Tracer
	starting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := s.services.Start(starting, Services()...); err != nil {
		return nil, err
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
		for i := range rules.Carries { // whose cluster has a name now
			rules.Carries[i].From = cmp.Or(rules.Carries[i].From, s.Pool)
		}
		s.options.Queues = []queuemanager.Queue{{
			Name: "default", Namespaces: []string{s.Namespace}, Rules: rules, OnLostCluster: rules.OnLostCluster, PreferClusters: rules.PreferClusters, Carries: rules.Carries,
			PodPolicy: rules.Pods, ObjectPolicy: rules.Objects, Submitters: rules.Submitters, Identities: rules.Identities, Limits: rules.Limits, StrayPods: rules.Strays,
		}}
	}
	if name := s.options.MovingQueue; name != "" {
		s.options.Queues = append(s.options.Queues, queuemanager.Queue{Name: name, Namespaces: []string{s.Namespace}, HomeObjects: workload.MoveFromHome})
	}
	if err := s.install(ctx, admin, s.Pool); err != nil {
		return err
	}
	if s.kubeconfigs, err = inprocess.Kubeconfigs(ctx, admin, s.options.Dir); err != nil || s.options.Through == nil {
		return err
	}
	for name, file := range s.kubeconfigs {
		if s.kubeconfigs[name], err = s.options.Through(name, file); err != nil {
			return err
		}
	}
	return nil
}

// install installs Muster in a cluster under a name, for the stack's namespaces.
func (s *Stack) install(ctx context.Context, admin *rest.Config, name string) error {
	if s.options.Installed {
		return install.Names(ctx, admin, []string{name}, s.Namespaces())
	}
	return install.Install(ctx, admin, []string{name}, s.Namespaces())
}

// Namespaces lists those of the stack, each once.
func (s *Stack) Namespaces() []string {
	namespaces := []string{s.Namespace}
	for _, queue := range s.options.Queues {
		namespaces = append(namespaces, queue.Namespaces...)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
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

// Subscribed reports whether a client of the stack's NATS server subscribes to exactly this
// subject.
func (s *Stack) Subscribed(subject string) bool { return s.server.Subscribed(subject) }

// Stop ends all services, then NATS. The namespace stays; the cluster goes with
// its last user.
func (s *Stack) Stop() {
	for _, name := range Services() {
		if s.services == nil {
			break
		}
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
