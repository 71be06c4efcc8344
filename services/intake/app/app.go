// Package app composes intake from its parts. It is not the process, which is
// the main package or `muster dev`.
package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// Config is intake's settings.
type Config struct {
	NATSURL         string
	NATSCredentials string
	NATSTLS         bus.TLS
	// NATSReplicas is on how many servers of a NATS cluster a stream is kept that
	// this service makes; 0 is one.
	NATSReplicas int
	// KubeRayFile says how the clusters' KubeRay operator is set up; see
	// ray.Operator for its format.
	KubeRayFile string
	// Operator is what the file says; as shipped when there is none. Validate sets
	// it.
	Operator ray.Operator
	// Cluster turns the door to Kubernetes on: it is what Muster calls the cluster.
	Cluster string
	// Kubeconfig is a path; empty means the pod's own service account.
	Kubeconfig string
	// KubeNamespaces are the namespaces whose objects come through the door,
	// separated by commas; empty for all.
	KubeNamespaces string
	// DefaultQueue takes AppWrappers without a queue label.
	DefaultQueue string
	// HTTP is the door for those without NATS; off without an address.
	HTTP HTTPConfig
}

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&c.NATSCredentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	c.NATSTLS.Register(flags)
	flags.IntVar(&c.NATSReplicas, "nats-replicas", 0, "on how many servers of a NATS cluster a stream is kept that is made here; the same for all services")
	flags.StringVar(&c.KubeRayFile, "kuberay", "", "YAML `file` that says how the KubeRay operator is set up; without it: 1.6.2 as shipped")
	flags.StringVar(&c.Cluster, "cluster", "", "`name` in Muster of the cluster whose AppWrappers and held Ray objects are taken; without it none are")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of that cluster; without it the pod's own service account")
	flags.StringVar(&c.KubeNamespaces, "kube-namespaces", "", "`namespaces`, separated by commas, whose objects are taken; empty for all")
	c.HTTP.register(flags)
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
	if c.NATSURL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	faults = append(faults, c.NATSTLS.Validate())
	if !bus.ValidReplicas(c.NATSReplicas) {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", c.NATSReplicas, bus.MaxReplicas))
	}
	if c.Cluster != "" && !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	if c.Cluster == "" && c.Kubeconfig != "" {
		faults = append(faults, errors.New("cluster: is missing; with kubeconfig the door to Kubernetes needs the cluster's name in Muster"))
	}
	if c.DefaultQueue == "" {
		c.DefaultQueue = "default"
	}
	faults = append(faults, c.HTTP.validate())
	return errors.Join(faults...)
}

const (
	// underWay bounds messages whose results are published but not yet stored.
	underWay = 1024
	// retryAfter is the pause before a submission whose result could not be
	// published comes again.
	retryAfter = 500 * time.Millisecond
	// storeTimeout bounds the wait for the server to store a result.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds the wait for all results together at the end: what is
	// not settled then comes again.
	stopTimeout = 2 * time.Second
)

// Run runs intake until ctx ends.
func Run(ctx context.Context, config *Config, runtime *service.Runtime) error {
	ctx = runtime.ForKubernetes(ctx)
	ready := runtime.Health.Await("subscribed")
	b, err := bus.Connect(ctx, bus.Options{
		URL: config.NATSURL, Name: "intake", Logger: runtime.Logger, CredentialsFile: config.NATSCredentials,
		TLS: config.NATSTLS, Replicas: config.NATSReplicas, Patient: true,
	})
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
		group.Go(func() error { return runDoor(ctx, config, b, spending, runtime) })
	}
	if config.HTTP.Address != "" {
		if err := serveHTTP(ctx, group, config, b, spending, runtime); err != nil {
			return err
		}
	}
	in := newIntake(config.Operator, b, spending, runtime)
	group.Go(func() error { return spending.Watch(ctx) })
	if err := in.run(ctx, ready); err != nil {
		return err
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}
