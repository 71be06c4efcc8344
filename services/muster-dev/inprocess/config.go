package inprocess

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/service"
	watcher "muster.dev/muster/services/capacity-watcher/app"
	console "muster.dev/muster/services/console/app"
	dispatcher "muster.dev/muster/services/dispatcher/app"
	intake "muster.dev/muster/services/intake/app"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// resyncEvery is the period of capacity-watcher's full picture.
const resyncEvery = time.Minute

// Config is what the services are given. The rest of their settings are the defaults of
// their programs.
type Config struct {
	NATSURL     string
	DatabaseURL string            // of queue-manager's own login
	Cluster     string            // what Muster calls the one cluster
	Kubeconfigs map[string]string // files, by service
	// Queues and Policy are the content of the queues file.
	Queues []queuemanager.Queue
	Policy quota.Config
	// NodeSelector restricts Muster to nodes by labels; empty for all.
	NodeSelector string
	// NodeGrace is how long a node may be not ready before gangs on it start again.
	NodeGrace time.Duration
	// ClusterSilence is queue-manager's; zero means its default.
	ClusterSilence time.Duration
	// Permission is the dispatcher's; zero means its default.
	Permission       time.Duration
	EstimateInterval time.Duration
	// KubeNamespaces are those in which intake watches objects, separated by commas; empty
	// for all.
	KubeNamespaces string
	// LookForKinds is intake's; zero means its default.
	LookForKinds time.Duration
	// MemberQueues are intake's, for a further cluster.
	MemberQueues string
	// HTTP turns on intake's HTTP API; the zero value leaves it off.
	HTTP intake.HTTPConfig
	// Console is the settings of the console.
	Console console.Config
}

// runner returns the run of a service with its settings, which are valid.
func (c *Config) runner(name string) (func(context.Context, *service.Runtime) error, error) {
	nats := bus.Settings{URL: c.NATSURL}
	switch name {
	case Intake:
		config := &intake.Config{NATS: nats, Cluster: c.Cluster, Kubeconfig: c.Kubeconfigs[name], KubeNamespaces: c.KubeNamespaces, LookForKinds: c.LookForKinds, MemberQueues: c.MemberQueues, HTTP: c.HTTP}
		config.DefaultQueue, _, _ = strings.Cut(c.MemberQueues, ",") // intake's own default where it is empty
		return func(ctx context.Context, r *service.Runtime) error { return intake.Run(ctx, config, r) }, config.Validate()
	case CapacityWatcher:
		config := &watcher.Config{NATS: nats, Cluster: c.Cluster, Kubeconfig: c.Kubeconfigs[name], NodeSelector: c.NodeSelector, ResyncEvery: resyncEvery}
		return func(ctx context.Context, r *service.Runtime) error { return watcher.Run(ctx, config, r) }, config.Validate()
	case Dispatcher:
		config := &dispatcher.Config{NATS: nats, Cluster: c.Cluster, Kubeconfig: c.Kubeconfigs[name], Permission: c.Permission}
		return func(ctx context.Context, r *service.Runtime) error { return dispatcher.Run(ctx, config, r) }, config.Validate()
	case QueueManager:
		config := &queuemanager.Config{
			NATS: nats, DatabaseURL: c.DatabaseURL, Queues: c.Queues, Policy: c.Policy, NodeGrace: c.NodeGrace, ClusterSilence: c.ClusterSilence, EstimateInterval: c.EstimateInterval,
		}
		return func(ctx context.Context, r *service.Runtime) error { return queuemanager.Run(ctx, config, r) }, config.Validate()
	case Console:
		config := &c.Console
		return func(ctx context.Context, r *service.Runtime) error { return console.Run(ctx, config, r) }, config.Validate()
	}
	return nil, fmt.Errorf("there is no service %q", name)
}
