package app

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/lease"
	"muster.dev/muster/pkg/workload"
)

// Config is capacity-watcher's settings.
type Config struct {
	NATSURL         string
	NATSCredentials string
	NATSTLS         bus.TLS
	// NATSReplicas is on how many servers of a NATS cluster a stream is kept that
	// this service makes; 0 is one.
	NATSReplicas int
	// Cluster is the name under which the cluster is known in Muster.
	Cluster string
	// Kubeconfig is a file; empty when the service runs inside of the cluster.
	Kubeconfig string
	// NodeSelector selects the nodes that Muster may use, for clusters that are
	// shared with others; empty for all.
	NodeSelector string
	// Lease is held by the one that watches and publishes.
	Lease lease.Config
	// ResyncEvery is how often a list of all that is seen is published.
	ResyncEvery time.Duration
}

// DefaultResync is how often a list of all that is seen is published.
const DefaultResync = 3 * time.Minute

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.NATSURL, "nats-url", "nats://127.0.0.1:4222", "`URL` of the NATS server")
	flags.StringVar(&c.NATSCredentials, "nats-credentials", "", "`file` with NATS credentials: .creds, or the seed of an nkey")
	c.NATSTLS.Register(flags)
	flags.IntVar(&c.NATSReplicas, "nats-replicas", 0, "on how many servers of a NATS cluster a stream is kept that is made here; the same for all services")
	flags.StringVar(&c.Cluster, "cluster", "", "`name` of the cluster in Muster")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; without it the service account of the pod is used")
	flags.StringVar(&c.NodeSelector, "node-selector", "", "`labels` of the nodes that Muster may use, as in kubectl; without it all")
	c.Lease.Register(flags)
	flags.DurationVar(&c.ResyncEvery, "resync-every", DefaultResync, "how often a list of all that is seen is published")
}

// Validate implements service.Config.
func (c *Config) Validate() error {
	var faults []error
	if c.NATSURL == "" {
		faults = append(faults, errors.New("nats-url: is missing"))
	}
	faults = append(faults, c.NATSTLS.Validate())
	if !bus.ValidReplicas(c.NATSReplicas) {
		faults = append(faults, fmt.Errorf("nats-replicas: %d: want 0 to %d", c.NATSReplicas, bus.MaxReplicas))
	}
	if !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	faults = append(faults, c.Lease.Validate("capacity-watcher", c.Cluster))
	if _, err := labels.Parse(c.NodeSelector); err != nil {
		faults = append(faults, fmt.Errorf("node-selector: %q: %w", c.NodeSelector, err))
	}
	if c.ResyncEvery == 0 {
		c.ResyncEvery = DefaultResync
	}
	if c.ResyncEvery < 0 {
		faults = append(faults, fmt.Errorf("resync-every: %s is negative", c.ResyncEvery))
	}
	return errors.Join(faults...)
}
