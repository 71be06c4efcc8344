package stack

import (
	"cmp"
	"context"
	"strings"
	"time"

	"muster.dev/muster/pkg/service"
	"muster.dev/muster/services/muster-dev/inprocess"
)

// stopTimeout bounds the end of a service; one that takes longer hangs.
const stopTimeout = time.Minute

// configuration returns what the services are given.
func (s *Stack) configuration() inprocess.Config {
	selector := poolLabel + "=" + s.Pool
	if s.options.AllNodes {
		selector = ""
	}
	return inprocess.Config{
		NATSURL: s.NATSURL, DatabaseURL: s.options.DatabaseURL, Cluster: s.Pool, Kubeconfigs: s.kubeconfigs,
		Queues: s.options.Queues, Policy: s.options.Policy, NodeSelector: selector, NodeGrace: cmp.Or(s.options.NodeGrace, time.Minute),
		ClusterSilence: s.options.ClusterSilence, Permission: s.options.Permission, EstimateInterval: time.Second, KubeNamespaces: strings.Join(s.Namespaces(), ","),
		LookForKinds: s.options.LookForKinds, HTTP: s.options.HTTP,
	}
}

// Settings returns what the services are given, to run one in a process of its own.
func (s *Stack) Settings() inprocess.Config { return s.configuration() }

// StartService starts a service, with what the stack has now, and waits until it is ready.
func (s *Stack) StartService(ctx context.Context, name string) error {
	s.services.Configure(s.configuration())
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.services.Start(ctx, name)
}

// StopService stops a service and returns how it ended; a clean stop is nil.
func (s *Stack) StopService(name string) error { return s.services.Stop(name, stopTimeout) }

// Runtimes returns what the running services were given, by name.
func (s *Stack) Runtimes() map[string]*service.Runtime { return s.services.Runtimes() }
