package lease

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/kube/lease/rules"
)

// Config is the settings of a service's lease.
type Config struct {
	// Lease is NAMESPACE/NAME.
	Lease string
	// Duration is how long a holder that does not renew keeps it.
	Duration time.Duration
}

// leastDuration leaves time to renew before the margin.
const leastDuration = 3 * time.Second

// namespace is where Muster's own objects are by default (deploy/rbac).
const namespace = "muster-system"

// Register adds the flags.
func (c *Config) Register(flags *flag.FlagSet) {
	flags.StringVar(&c.Lease, "lease", "", "`namespace/name` of the Lease object in the cluster that the service acts for (default \""+namespace+"/muster-SERVICE-CLUSTER\")")
	flags.DurationVar(&c.Duration, "lease-duration", rules.DefaultDuration, "how long a process that does not renew the lease keeps it")
}

// Validate fills in the defaults for a service of a cluster.
func (c *Config) Validate(service, cluster string) error {
	var faults []error
	if c.Lease == "" {
		c.Lease = namespace + "/muster-" + service + "-" + cluster
	}
	if c.Duration == 0 {
		c.Duration = rules.DefaultDuration
	}
	if c.Duration < leastDuration || c.Duration > rules.MostDuration {
		faults = append(faults, fmt.Errorf("lease-duration: %s: want %s to %s", c.Duration, leastDuration, rules.MostDuration))
	}
	space, name, ok := strings.Cut(c.Lease, "/")
	if !ok || len(validation.IsDNS1123Label(space)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		faults = append(faults, fmt.Errorf("lease: %q: want NAMESPACE/NAME", c.Lease))
	}
	return errors.Join(faults...)
}

// Split returns the namespace and the name.
func (c *Config) Split() (namespace, name string) {
	namespace, name, _ = strings.Cut(c.Lease, "/")
	return namespace, name
}
