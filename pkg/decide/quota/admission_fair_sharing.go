package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// AdmissionFairSharing is Kueue's setting of that name: how the past use of LocalQueues
// counts, by which ClusterQueues with an AdmissionScope order their workloads.
type AdmissionFairSharing struct {
	// UsageHalfLifeTime is the age at which use weighs half. With zero, past use does not
	// count.
	UsageHalfLifeTime workload.Duration `json:"usageHalfLifeTime"`
	// UsageSamplingInterval is for how long an admission counts as if it had run already,
	// and how often the order is computed again; zero for five minutes.
	UsageSamplingInterval workload.Duration `json:"usageSamplingInterval,omitempty"`
	// ResourceWeights are how much a core, a byte or a piece of a resource counts; one of
	// what they do not name.
	ResourceWeights map[resource.Name]float64 `json:"resourceWeights,omitempty"`
}

// defaultSampling is Kueue's.
const defaultSampling = 5 * time.Minute

// SamplingInterval returns the interval that is set, or the default.
func (a *AdmissionFairSharing) SamplingInterval() time.Duration {
	return cmp.Or(time.Duration(a.UsageSamplingInterval), defaultSampling)
}

// AdmissionScope is whether the workloads of a ClusterQueue are ordered by the past use of
// their LocalQueues.
type AdmissionScope struct {
	AdmissionMode string `json:"admissionMode"`
}

// Modes of an AdmissionScope.
const (
	UsageBasedAdmissionFairSharing = "UsageBasedAdmissionFairSharing"
	NoAdmissionFairSharing         = "NoAdmissionFairSharing"
)

func (s *AdmissionScope) usageBased() bool {
	return s != nil && s.AdmissionMode == UsageBasedAdmissionFairSharing
}

// OrdersByUsage reports whether the workloads of the queue are ordered by the past use of
// their LocalQueues.
func (q *Queue) OrdersByUsage() bool {
	return q.AdmissionScope.usageBased() && q.tree.localHalfLife() > 0
}

// SamplingInterval returns how often the order by past use is computed again.
func (t *Tree) SamplingInterval() time.Duration {
	return t.config.AdmissionFairSharing.SamplingInterval()
}

// localHalfLife is that of the past use of LocalQueues; zero when it does not count.
func (t *Tree) localHalfLife() time.Duration {
	if a := t.config.AdmissionFairSharing; a != nil {
		return time.Duration(a.UsageHalfLifeTime)
	}
	return 0
}

// maxResourceWeight bounds a weight, so that sums of weighted amounts stay finite.
const maxResourceWeight = 1e9

func (v *validation) admissionFairSharing(c *Config) {
	for i := range c.ClusterQueues {
		if s := c.ClusterQueues[i].AdmissionScope; s != nil {
			path := fault.Index("clusterQueues", i) + ".admissionScope.admissionMode"
			if s.AdmissionMode == "" {
				v.faults.Add(path, "is missing; want %s or %s", UsageBasedAdmissionFairSharing, NoAdmissionFairSharing)
			}
			v.oneOf(path, s.AdmissionMode, UsageBasedAdmissionFairSharing, NoAdmissionFairSharing)
		}
	}
	for i, l := range c.LocalQueues {
		v.weight(fault.Index("localQueues", i), l.FairSharing)
	}
	if c.AdmissionFairSharing == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.AdmissionFairSharing.ResourceWeights)) {
		if weight := c.AdmissionFairSharing.ResourceWeights[name]; !(weight >= 0 && weight <= maxResourceWeight) {
			v.faults.Add(fault.Key("admissionFairSharing.resourceWeights", string(name)), "%g: want a number from 0 to %g, such as 1 or 0.5", weight, maxResourceWeight)
		}
	}
}

// withoutAdmissionFairSharing names what does nothing without the setting.
func (c *Config) withoutAdmissionFairSharing() (notes []string) {
	if c.AdmissionFairSharing != nil {
		return nil
	}
	const lacks = "does nothing: the queues file has no admissionFairSharing, so the past use of LocalQueues does not count"
	for _, q := range c.ClusterQueues {
		if q.AdmissionScope.usageBased() {
			notes = append(notes, fmt.Sprintf("clusterQueue %q: admissionScope %s", q.Name, lacks))
		}
	}
	for _, l := range c.LocalQueues {
		if l.FairSharing != nil {
			notes = append(notes, fmt.Sprintf("localQueue %q of namespace %q: fairSharing %s", l.Name, l.Namespace, lacks))
		}
	}
	return notes
}
