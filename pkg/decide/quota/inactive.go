package quota

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/fault"
)

// ProvisioningController is the controller of Kueue's checks that ask for nodes.
const ProvisioningController = "kueue.x-k8s.io/provisioning-request"

// AdmissionCheck is Kueue's: something that must agree before a workload is admitted.
type AdmissionCheck struct {
	Name           string           `json:"name"`
	ControllerName string           `json:"controllerName"`
	Parameters     *CheckParameters `json:"parameters,omitempty"`
	// RetryDelayMinutes is Kueue's former field; it has no effect there either.
	RetryDelayMinutes *int64 `json:"retryDelayMinutes,omitempty"`
}

// CheckParameters names the object with the settings of an AdmissionCheck.
type CheckParameters struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// ChecksStrategy names AdmissionChecks for some flavors of a ClusterQueue.
type ChecksStrategy struct {
	AdmissionChecks []FlavoredCheck `json:"admissionChecks,omitempty"`
}

// FlavoredCheck is an AdmissionCheck for flavors; for all when there are none.
type FlavoredCheck struct {
	Name      string   `json:"name"`
	OnFlavors []string `json:"onFlavors,omitempty"`
}

// checks lists the AdmissionChecks of the queue.
func (q *ClusterQueue) checks() []string {
	names := append([]string(nil), q.AdmissionChecks...)
	if q.ChecksStrategy != nil {
		for _, check := range q.ChecksStrategy.AdmissionChecks {
			names = append(names, check.Name)
		}
	}
	return names
}

// Inactive returns the ClusterQueues of which nothing may be admitted although their manifests are
// valid, and why: they ask for what Muster does not do.
func (c Config) Inactive() map[string]string {
	inactive := map[string]string{}
	for i := range c.ClusterQueues {
		if q := &c.ClusterQueues[i]; c.unsupported(q) != "" {
			inactive[q.Name] = fmt.Sprintf("clusterQueue %q is inactive: %s", q.Name, c.unsupported(q))
		}
	}
	return inactive
}

// InactiveChecks returns the AdmissionChecks that make every queue inactive which names them, and
// why.
func (c Config) InactiveChecks() map[string]string {
	inactive := map[string]string{}
	for i := range c.AdmissionChecks {
		if why := c.unusable(&c.AdmissionChecks[i]); why != "" {
			inactive[c.AdmissionChecks[i].Name] = why
		}
	}
	return inactive
}

// unusable returns why a check makes every queue inactive; empty when it does not.
func (c *Config) unusable(check *AdmissionCheck) string {
	if check.ControllerName == ProvisioningController {
		return c.missingConfig(check)
	}
	return unaskable(check)
}

// unsupported returns what the queue asks for that Muster does not do, or that is not there;
// empty for nothing.
func (c *Config) unsupported(q *ClusterQueue) string {
	for _, name := range q.checks() {
		i := slices.IndexFunc(c.AdmissionChecks, func(check AdmissionCheck) bool { return check.Name == name })
		if i < 0 {
			return fmt.Sprintf("AdmissionCheck %q does not exist", name)
		}
		if why := c.unusable(&c.AdmissionChecks[i]); why != "" {
			return why
		}
	}
	if why := c.missingTopology(q); why != "" {
		return why
	}
	return c.askTwice(q)
}

// askTwice names two checks of the queue that ask for nodes for the same flavor; empty for none.
func (c *Config) askTwice(q *ClusterQueue) string {
	asking := slices.DeleteFunc(q.flavoredChecks(), func(check FlavoredCheck) bool {
		return !slices.ContainsFunc(c.AdmissionChecks, func(a AdmissionCheck) bool { return a.Name == check.Name && a.ControllerName == ProvisioningController })
	})
	for i, a := range asking {
		for _, b := range asking[i+1:] {
			if flavors := sharedFlavors(a, b); a.Name != b.Name && flavors != "" {
				return fmt.Sprintf("AdmissionChecks %q and %q both ask for nodes for %s; Muster makes one request for a gang: leave one of them", a.Name, b.Name, flavors)
			}
		}
	}
	return ""
}

// sharedFlavors words the flavors that two checks are for; empty for none. A check without
// flavors is for all.
func sharedFlavors(a, b FlavoredCheck) string {
	switch {
	case len(a.OnFlavors)+len(b.OnFlavors) == 0:
		return "all flavors"
	case len(a.OnFlavors) == 0:
		return fmt.Sprintf("flavor %q", b.OnFlavors[0])
	case len(b.OnFlavors) == 0:
		return fmt.Sprintf("flavor %q", a.OnFlavors[0])
	}
	for _, name := range a.OnFlavors {
		if slices.Contains(b.OnFlavors, name) {
			return fmt.Sprintf("flavor %q", name)
		}
	}
	return ""
}

// Inactive returns why nothing of a ClusterQueue may be admitted; see Config.Inactive.
func (t *Tree) Inactive(clusterQueue string) string { return t.inactive[clusterQueue] }

func (v *validation) admissionChecks(c *Config) {
	seen := map[string]string{}
	for i, check := range c.AdmissionChecks {
		path := fault.Index("admissionChecks", i)
		v.name(path, check.Name, seen)
		v.line(path+".controllerName", check.ControllerName, maxControllerName)
	}
	for i, q := range c.ClusterQueues {
		if names := q.checks(); len(names) > maxChecks {
			v.faults.Add(fault.Index("clusterQueues", i)+".admissionChecks", "names %d checks; want at most %d", len(names), maxChecks)
		}
		for j, name := range q.checks() {
			v.line(fault.Index(fault.Index("clusterQueues", i)+".admissionChecks", j), name, maxControllerName)
		}
	}
}

// Bounds of what a queue may name: those of Kueue.
const (
	maxControllerName = 316
	maxChecks         = 64
)
