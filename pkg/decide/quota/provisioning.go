package quota

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// provisioningConfigKind is the kind that an AdmissionCheck of ProvisioningController names.
const provisioningConfigKind = "ProvisioningRequestConfig"

// ProvisioningConfig is Kueue's ProvisioningRequestConfig: what is asked for, and how often.
type ProvisioningConfig struct {
	Name       string            `json:"name"`
	Class      string            `json:"provisioningClassName"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// ManagedResources: pods that use none of them are not asked for. Without any, all are.
	ManagedResources []resource.Name `json:"managedResources,omitempty"`
	// Updates are what pods get when their nodes are there; nil for nothing.
	Updates *PodSetUpdates `json:"podSetUpdates,omitempty"`
	// MergePolicy says which pod sets are asked for as one; empty is none.
	MergePolicy string         `json:"podSetMergePolicy,omitempty"`
	Retry       *RetryStrategy `json:"retryStrategy,omitempty"`
}

// RetryStrategy is how often and when nodes are asked for again; nil is Kueue's default.
type RetryStrategy struct {
	LimitCount  *int64 `json:"backoffLimitCount,omitempty"`
	BaseSeconds *int64 `json:"backoffBaseSeconds,omitempty"`
	MaxSeconds  *int64 `json:"backoffMaxSeconds,omitempty"`
}

// Kueue's defaults of a RetryStrategy.
const (
	defaultLimitCount  = 3
	defaultBaseSeconds = 60
	defaultMaxSeconds  = 1800
)

// Limit is how often a request is repeated that has failed. A gang that shows itself as pods
// waits as long as it takes, unless the configuration limits it.
func (c *ProvisioningConfig) Limit() int {
	if c.Retry == nil || c.Retry.LimitCount == nil {
		if c.Class == workload.PlaceholderClass {
			return math.MaxInt
		}
		return defaultLimitCount
	}
	return int(*c.Retry.LimitCount)
}

// Backoff is the wait before the next request after that many have failed, at least one.
func (c *ProvisioningConfig) Backoff(failed int) time.Duration {
	base, most := int64(defaultBaseSeconds), int64(defaultMaxSeconds)
	if r := c.Retry; r != nil && r.BaseSeconds != nil {
		base = *r.BaseSeconds
	}
	if r := c.Retry; r != nil && r.MaxSeconds != nil {
		most = *r.MaxSeconds
	}
	for range min(max(failed, 1)-1, 30) { // 2^30 seconds are more than any bound
		base *= 2
	}
	return time.Duration(min(base, most)) * time.Second
}

// manages reports whether pods of the set are asked for.
func (c *ProvisioningConfig) manages(set *workload.PodSet) bool {
	return len(c.ManagedResources) == 0 || slices.ContainsFunc(c.ManagedResources, func(name resource.Name) bool {
		return set.Template.Requests[name] > 0
	})
}

// Provisioning is an AdmissionCheck that asks for nodes, with its configuration.
type Provisioning struct {
	Check  string
	Config *ProvisioningConfig
}

// Placeholders reports whether gangs show themselves as pods to an autoscaler.
func (p *Provisioning) Placeholders() bool { return p.Config.Class == workload.PlaceholderClass }

// Manages reports whether pods of the set are asked for.
func (p *Provisioning) Manages(set *workload.PodSet) bool { return p.Config.manages(set) }

// Provisioning returns the check by which nodes are asked for when pod sets with these
// flavors have no places; nil for none.
func (q *Queue) Provisioning(flavors []workload.PodSetFlavors) *Provisioning {
	for _, check := range q.flavoredChecks() {
		config := q.tree.provisioning[check.Name]
		if config != nil && (len(check.OnFlavors) == 0 || usesAny(flavors, check.OnFlavors)) {
			return &Provisioning{check.Name, config}
		}
	}
	return nil
}

// ShowsPlaceholders reports whether gangs of the queue may show themselves as pods.
func (q *Queue) ShowsPlaceholders() bool {
	return slices.ContainsFunc(q.flavoredChecks(), func(check FlavoredCheck) bool {
		config := q.tree.provisioning[check.Name]
		return config != nil && config.Class == workload.PlaceholderClass
	})
}

func usesAny(sets []workload.PodSetFlavors, names []string) bool {
	for _, set := range sets {
		for _, flavor := range set.Flavors {
			if slices.Contains(names, flavor) {
				return true
			}
		}
	}
	return false
}

// flavoredChecks lists the checks of the queue with the flavors that they are for.
func (q *ClusterQueue) flavoredChecks() []FlavoredCheck {
	var checks []FlavoredCheck
	for _, name := range q.AdmissionChecks {
		checks = append(checks, FlavoredCheck{Name: name})
	}
	if q.ChecksStrategy != nil {
		checks = append(checks, q.ChecksStrategy.AdmissionChecks...)
	}
	return checks
}

// provisioningByCheck returns the configurations of the checks that ask for nodes.
func (c *Config) provisioningByCheck() map[string]*ProvisioningConfig {
	byName := map[string]*ProvisioningConfig{}
	for i := range c.ProvisioningConfigs {
		byName[c.ProvisioningConfigs[i].Name] = &c.ProvisioningConfigs[i]
	}
	byCheck := map[string]*ProvisioningConfig{}
	for _, check := range c.AdmissionChecks {
		if p := check.Parameters; check.ControllerName == ProvisioningController && p != nil && p.Kind == provisioningConfigKind {
			if config := byName[p.Name]; config != nil {
				byCheck[check.Name] = config
			}
		}
	}
	return byCheck
}

// missingConfig returns what a check of ProvisioningController lacks; empty for nothing.
func (c *Config) missingConfig(check *AdmissionCheck) string {
	p := check.Parameters
	switch {
	case p == nil:
		return fmt.Sprintf("AdmissionCheck %q has no parameters; name a %s", check.Name, provisioningConfigKind)
	case p.Kind != provisioningConfigKind || p.APIGroup != "kueue.x-k8s.io":
		return fmt.Sprintf("AdmissionCheck %q has parameters of %s, kind %q; want kueue.x-k8s.io, kind %s", check.Name, p.APIGroup, p.Kind, provisioningConfigKind)
	case !slices.ContainsFunc(c.ProvisioningConfigs, func(config ProvisioningConfig) bool { return config.Name == p.Name }):
		return fmt.Sprintf("%s %q of AdmissionCheck %q does not exist", provisioningConfigKind, p.Name, check.Name)
	}
	return ""
}

// Bounds of a configuration: those of Kueue and of ProvisioningRequest.
const (
	maxParameters       = 100
	maxParameter        = 255
	maxManagedResources = 100
	maxClass            = 253
	maxBackoffSeconds   = 30 * 24 * 3600
	maxBackoffLimit     = 1000
)

var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func (v *validation) provisioningConfigs(c *Config) {
	seen := map[string]string{}
	for i := range c.ProvisioningConfigs {
		config, path := &c.ProvisioningConfigs[i], fault.Index("provisioningRequestConfigs", i)
		v.name(path, config.Name, seen)
		if len(config.Class) > maxClass || !className.MatchString(config.Class) {
			v.faults.Add(path+".provisioningClassName", "%q: want a name such as queued-provisioning.gke.io, of at most %d bytes", config.Class, maxClass)
		}
		if len(config.Parameters) > maxParameters {
			v.faults.Add(path+".parameters", "has %d parameters; want at most %d", len(config.Parameters), maxParameters)
		}
		for _, name := range slices.Sorted(maps.Keys(config.Parameters)) {
			if value := config.Parameters[name]; len(value) > maxParameter || strings.ContainsAny(value, "\x00") {
				v.faults.Add(path+".parameters."+name, "has %d bytes; want at most %d", len(value), maxParameter)
			}
		}
		if len(config.ManagedResources) > maxManagedResources {
			v.faults.Add(path+".managedResources", "names %d resources; want at most %d", len(config.ManagedResources), maxManagedResources)
		}
		if p := config.MergePolicy; p != "" && p != workload.IdenticalPodTemplates && p != workload.IdenticalScheduling {
			v.faults.Add(path+".podSetMergePolicy", "%s: want %s or %s", fault.Quote(p), workload.IdenticalPodTemplates, workload.IdenticalScheduling)
		}
		v.podSetUpdates(path, config)
		v.placeholders(path, config)
		v.retry(path+".retryStrategy", config.Retry)
	}
}

func (v *validation) retry(path string, r *RetryStrategy) {
	if r == nil {
		return
	}
	for _, bound := range []struct {
		field string
		value *int64
		most  int64
	}{
		{"backoffLimitCount", r.LimitCount, maxBackoffLimit},
		{"backoffBaseSeconds", r.BaseSeconds, maxBackoffSeconds},
		{"backoffMaxSeconds", r.MaxSeconds, maxBackoffSeconds},
	} {
		if bound.value != nil && (*bound.value < 0 || *bound.value > bound.most) {
			v.faults.Add(path+"."+bound.field, "%d: want 0 to %d", *bound.value, bound.most)
		}
	}
}
