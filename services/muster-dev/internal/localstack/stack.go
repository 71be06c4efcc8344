// Package localstack runs all of Muster in one process for a laptop: a NATS server,
// Postgres and a dev cluster of its own, and the four services, each as it would
// run alone.
//
// It is not for production, and it is no second implementation of anything: the
// services are started by the functions that their own programs call.
package localstack

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/local/devcluster"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/local/scratch"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// ClusterName is what Muster calls the one cluster of the stack.
const ClusterName = "local"

// Options are what the stack is made of.
type Options struct {
	// Kubeconfig names a cluster of the user; empty starts a dev cluster.
	Kubeconfig string
	// NodeSelector restricts Muster to nodes of the user's cluster by labels.
	NodeSelector string
	Fleet        string // of the dev cluster
	Devcluster   string // its binary; empty looks for it
	// DatabaseURL names a Postgres of the user; empty starts one.
	DatabaseURL string
	// FreshDatabase makes a database of its own in that Postgres and drops it at
	// the end.
	FreshDatabase bool
	Queues        []queuemanager.Queue
	Policy        quota.Config // quota, cohorts and the rest
	// ClusterSilence is queue-manager's; zero means its default.
	ClusterSilence time.Duration
	NATSPort       int // -1 takes a free one
	// HTTPPort is of the HTTP API on 127.0.0.1; -1 takes a free one, 0 leaves the API out.
	HTTPPort int
	// ConsolePort is of the console on 127.0.0.1; -1 takes a free one, 0 leaves the console out.
	// It needs the HTTP API.
	ConsolePort int
	Dir         string // where the temporary directory is made; empty is the usual place
	Logger      *zap.Logger
	// Progress prints to the user what happens.
	Progress func(format string, args ...any)
	// ClusterOutput gets what the dev cluster prints while it starts; nil for none.
	ClusterOutput io.Writer
}

// Stack is a running stack.
type Stack struct {
	NATSURL    string
	HTTPURL    string // of the HTTP API; empty without one
	ConsoleURL string // of the console; empty without one
	TokenFile  string // with the token of an operator for the HTTP API
	Kubeconfig string // of the administrator
	Admin      *rest.Config
	Dir        string // files of the stack; gone after Stop

	options     Options
	cluster     *devcluster.Cluster // nil in a cluster of the user's
	kubeconfigs map[string]string   // of the services' own accounts
	listening   chan net.Addr       // of the HTTP API, then of the console
	databaseURL string
	failed      chan error
	stops       []func() // in the order of the starts
}

// Start starts the stack and returns when every part is ready. When it fails
// nothing is left; after it Stop ends all.
func Start(ctx context.Context, o Options) (_ *Stack, err error) {
	s := &Stack{options: o, failed: make(chan error, 1), listening: make(chan net.Addr, 1)}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	starting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	cluster := s.startCluster(starting) // it takes longest, so the others start beside it
	if err := s.startServers(ctx); err != nil {
		giveUp()
		<-cluster
		return nil, err
	}
	if err := <-cluster; err != nil {
		return nil, err
	}
	if err := s.prepareCluster(ctx); err != nil {
		return nil, err
	}
	if err := s.startServices(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// NodePool runs a `pool` command of the dev cluster, such as "set", "l4", "--stock", "3".
func (s *Stack) NodePool(ctx context.Context, command ...string) error {
	if s.cluster == nil {
		return fmt.Errorf("node pools are of a dev cluster, and the cluster is that of %s", s.options.Kubeconfig)
	}
	return s.cluster.Pool(ctx, command...)
}

// Failed reports when a part of the running stack ends on its own.
func (s *Stack) Failed() <-chan error { return s.failed }

// Stop ends all parts, the last started first, and removes what they had on
// disk. It is called once.
func (s *Stack) Stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
	s.stops = nil
}

func (s *Stack) atStop(stop func()) { s.stops = append(s.stops, stop) }

// fail reports the first failure; later ones follow from it.
func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

func (s *Stack) makeDir() error {
	dir, err := scratch.New(s.options.Dir, "muster-dev-")
	if err != nil {
		return err
	}
	s.Dir = dir.Path
	s.atStop(dir.Remove)
	return nil
}

// startCluster starts the dev cluster, or takes the user's. The channel tells
// when it is there; then it is registered for Stop.
func (s *Stack) startCluster(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if s.options.Kubeconfig != "" {
		s.Kubeconfig = s.options.Kubeconfig
		done <- nil
		return done
	}
	name := fmt.Sprintf("muster-dev-%d", os.Getpid())
	s.options.Progress("starting a dev cluster with fleet %q", s.options.Fleet)
	s.atStop(func() {
		if s.cluster != nil {
			s.cluster.Stop()
		}
	})
	go func() {
		started := time.Now()
		cluster, err := devcluster.Start(ctx, devcluster.Options{
			Binary: s.options.Devcluster, Name: name, Fleet: s.options.Fleet, Progress: s.options.ClusterOutput,
		})
		if err == nil {
			s.cluster, s.Kubeconfig = cluster, cluster.Kubeconfig
			s.options.Progress("dev cluster is ready: %d nodes (%.1f s)", cluster.Nodes, time.Since(started).Seconds())
			go s.watch("dev cluster", cluster.Exited())
		}
		done <- err
	}()
	return done
}

// startServers starts Postgres and NATS.
func (s *Stack) startServers(ctx context.Context) error {
	if err := s.startDatabase(ctx); err != nil {
		return err
	}
	if err := queuemanager.Migrate(ctx, s.databaseURL, s.options.Logger); err != nil {
		return err
	}
	if s.options.DatabaseURL == "" {
		login, _, err := postgres.Login(ctx, s.databaseURL, queuemanager.DatabaseRole)
		if err != nil {
			return err
		}
		s.databaseURL = login
	}
	server, err := natsserver.Start(filepath.Join(s.Dir, "nats"), s.options.NATSPort)
	if err != nil {
		return err
	}
	s.atStop(server.Stop)
	s.NATSURL = server.URL()
	s.options.Progress("NATS is ready: %s", s.NATSURL)
	return nil
}

// watch reports a child process that has ended; when we ended it no caller listens
// any more.
func (s *Stack) watch(what string, exited <-chan struct{}) {
	<-exited
	s.fail(fmt.Errorf("%s has ended on its own", what))
}

// adminConfig reads a kubeconfig.
func adminConfig(file string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", file, err)
	}
	return config, nil
}
