package app

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/spec/workload"
)

// Config is capacity-watcher's settings.
type Config struct {
	NATS bus.Settings
	// Cluster is the cluster's name in Muster.
	Cluster string
	// Kubeconfig is a file; empty when the service runs inside of the cluster.
	Kubeconfig string
	// NodeSelector selects the nodes that Muster may use, for clusters that are
	// shared with others; empty for all.
	NodeSelector string
	// Lease is held by the active instance.
	Lease lease.Config
	// ResyncEvery is the period of the list of everything observed.
	ResyncEvery time.Duration
}

// defaultResync is the default of ResyncEvery.
const defaultResync = 3 * time.Minute

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	c.NATS.Register(flags)
	flags.StringVar(&c.Cluster, "cluster", "", "`name` of the cluster in Muster")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; without it the service account of the pod is used")
	flags.StringVar(&c.NodeSelector, "node-selector", "", "`labels` of the nodes that Muster may use, as in kubectl; without it all")
	c.Lease.Register(flags)
	flags.DurationVar(&c.ResyncEvery, "resync-every", defaultResync, "period of the list of all nodes and gangs")
}

// Validate implements service.Config.
func (c *Config) Validate() error {
	var faults []error
	faults = append(faults, c.NATS.Validate())
	if !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	faults = append(faults, c.Lease.Validate("capacity-watcher", c.Cluster))
	if _, err := labels.Parse(c.NodeSelector); err != nil {
		faults = append(faults, fmt.Errorf("node-selector: %q: %w", c.NodeSelector, err))
	}
	if c.ResyncEvery == 0 {
		c.ResyncEvery = defaultResync
	}
	if c.ResyncEvery < 0 {
		faults = append(faults, fmt.Errorf("resync-every: %s: want a positive duration, or 0", c.ResyncEvery))
	}
	return errors.Join(faults...)
}
