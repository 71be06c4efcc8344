package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Config is intake's settings.
type Config struct {
	NATS bus.Settings
	// KubeRayFile describes the clusters' KubeRay operator; see ray.Operator for
	// its format.
	KubeRayFile string
	// Operator is read from KubeRayFile by Validate; without a file it is KubeRay as
	// shipped.
	Operator ray.Operator
	// Cluster is the cluster's name in Muster; it turns the Kubernetes controller on.
	Cluster string
	// Kubeconfig is a path; empty means the pod's own service account.
	Kubeconfig string
	// KubeNamespaces are the watched namespaces, separated by commas; empty for all.
	KubeNamespaces string
	// LookForKinds is how often intake looks whether Kueue's definitions have come or gone;
	// zero means 30 s.
	LookForKinds time.Duration
	// DefaultQueue is for AppWrappers without a queue label.
	DefaultQueue string
	// MemberQueues, separated by commas, are the queues to which objects of a further cluster may
	// be submitted. With them intake serves the objects of that cluster and nothing else, by way of
	// queue-manager.
	MemberQueues string
	// HTTP is the HTTP API; off without an address.
	HTTP HTTPConfig
	// Webhooks are off without an address.
	Webhooks WebhookConfig
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	c.NATS.Register(flags)
	flags.StringVar(&c.KubeRayFile, "kuberay", "", "YAML `file` that describes the KubeRay operator; without it: 1.6.2 as shipped")
	flags.StringVar(&c.Cluster, "cluster", "", "`name` in Muster of the cluster whose AppWrappers and labelled Ray objects are submitted; without it none are")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of that cluster; without it the pod's own service account")
	flags.StringVar(&c.KubeNamespaces, "kube-namespaces", "", "`namespaces` to watch, separated by commas; empty for all")
	flags.StringVar(&c.MemberQueues, "member-queues", "", "`queues`, separated by commas, to which objects of a further cluster may be submitted; with them intake serves that cluster alone, and reads no submissions over NATS or HTTP")
	c.HTTP.register(flags)
	c.Webhooks.register(flags)
	flags.StringVar(&c.DefaultQueue, "default-queue", "default", "`queue` of AppWrappers without a queue label")
}

// Validate implements service.Config. It reads the file that the settings name.
func (c *Config) Validate() error {
	c.Operator = ray.Shipped()
	if c.KubeRayFile != "" {
		content, err := os.ReadFile(c.KubeRayFile)
		if err != nil {
			return fmt.Errorf("kuberay: %w", err)
		}
		if c.Operator, err = ray.ReadOperator(content); err != nil {
			return fmt.Errorf("kuberay: %s: %w", c.KubeRayFile, err)
		}
	}
	var faults []error
	faults = append(faults, c.NATS.Validate())
	if c.Cluster != "" && !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	if c.Cluster == "" && c.Kubeconfig != "" {
		faults = append(faults, errors.New("cluster: is missing; with kubeconfig the Kubernetes controller needs the cluster's name in Muster"))
	}
	if c.DefaultQueue == "" {
		c.DefaultQueue = "default"
	}
	faults = append(faults, c.validateMember(), c.HTTP.validate(), c.Webhooks.validate(c.Cluster))
	return errors.Join(faults...)
}

// validateMember checks the settings of the intake of a further cluster.
func (c *Config) validateMember() error {
	queues := split(c.MemberQueues)
	if c.MemberQueues == "" {
		return nil
	}
	var faults []error
	for _, queue := range queues {
		if !workload.ValidName(queue) {
			faults = append(faults, fmt.Errorf("member-queues: %q: want names of queues, separated by commas", queue))
		}
	}
	switch {
	case c.Cluster == "":
		faults = append(faults, errors.New("cluster: is missing; member-queues are for the objects of a further cluster"))
	case c.HTTP.Address != "":
		faults = append(faults, errors.New("http-address: the intake of a further cluster has no HTTP API; leave it out, or member-queues"))
	case !slices.Contains(queues, c.DefaultQueue):
		faults = append(faults, fmt.Errorf("default-queue: %q is none of member-queues; want one of them", c.DefaultQueue))
	}
	return errors.Join(faults...)
}

const (
	// underWay bounds the messages whose results are published but not yet stored.
	underWay = 1024
	// retryAfter is the redelivery delay of a submission whose result could not be
	// published.
	retryAfter = 500 * time.Millisecond
	// storeTimeout bounds the wait for the server to store a result.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds the wait for all results at shutdown; NATS redelivers the
	// messages that are not settled by then.
	stopTimeout = 2 * time.Second
)

// Run runs intake until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ctx = runtime.ForKubernetes(ctx)
	ready := runtime.Health.Await("subscribed")
	b, err := config.NATS.Connect(ctx, "intake", runtime.Logger)
	if err != nil {
		return err
	}
	defer b.Close()
	runtime.AwaitNATS(b)
	if err := b.AwaitStreams(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	spending := budget.New(budget.Default())
	if config.Cluster != "" {
		group.Go(func() error { return runController(ctx, config, b, spending, runtime) })
	}
	if config.HTTP.Address != "" {
		if err := serveHTTP(ctx, group, config, b, spending, runtime); err != nil {
			return err
		}
	}
	group.Go(func() error { return spending.Watch(ctx) })
	if config.MemberQueues != "" {
		ready() // it reads no submissions
	} else if err := newIntake(config.Operator, b, spending, runtime).run(ctx, ready); err != nil {
		return err
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
