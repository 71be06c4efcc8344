package app

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Config is the dispatcher's settings.
type Config struct {
	NATS bus.Settings
	// Cluster is what queue-manager calls the cluster of this dispatcher.
	Cluster string
	// Kubeconfig is a path; empty means the pod's own service account.
	Kubeconfig string
	// Lease is held by the one that acts.
	Lease   lease.Config
	Workers int
	// SweepEvery is how often orphans are looked for.
	SweepEvery time.Duration
	// Permission is how long the cluster may keep the gangs of queues that fail over without
	// queue-manager's word.
	Permission time.Duration
}

const (
	defaultWorkers = 32
	defaultSweep   = 20 * time.Second
	// defaultPermission is a compromise between a slow failover and gangs that stop because
	// queue-manager or NATS is away for a while. Below leastPermission a slow answer stops gangs.
	defaultPermission = 2 * time.Minute
	leastPermission   = 10 * time.Second
)

// Register implements service.Config.
func (c *Config) Register(flags *flag.FlagSet) {
	c.NATS.Register(flags)
	flags.StringVar(&c.Cluster, "cluster", "", "`name` of the cluster in Muster")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig `file`; without it the pod's own service account")
	c.Lease.Register(flags)
	flags.IntVar(&c.Workers, "workers", defaultWorkers, "workloads worked on at once")
	flags.DurationVar(&c.SweepEvery, "sweep-every", defaultSweep, "how often objects without a live workload are looked for")
	flags.DurationVar(&c.Permission, "permission", defaultPermission, "for how long the gangs of queues with onLostCluster failover are kept while queue-manager does not answer")
}

// Validate implements service.Config.
func (c *Config) Validate() error {
	var faults []error
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = defaultSweep
	}
	if c.Permission == 0 {
		c.Permission = defaultPermission
	}
	faults = append(faults, c.NATS.Validate())
	if !workload.ValidName(c.Cluster) {
		faults = append(faults, fmt.Errorf("cluster: %q: want a name of lower-case letters, digits and dashes", c.Cluster))
	}
	faults = append(faults, c.Lease.Validate("dispatcher", c.Cluster))
	if c.Workers < 0 {
		faults = append(faults, fmt.Errorf("workers: %d: want at least 1", c.Workers))
	}
	if c.SweepEvery < 0 {
		faults = append(faults, fmt.Errorf("sweep-every: %s: want a positive duration, or 0", c.SweepEvery))
	}
	if c.Permission < leastPermission || c.Permission > event.PermissionMost {
		faults = append(faults, fmt.Errorf("permission: %s: want %s to %s", c.Permission, leastPermission, event.PermissionMost))
	}
	return errors.Join(faults...)
}
