package quota

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
)

// Validate returns all faults of the Config as a fault.List, with the paths of
// its JSON.
func (c *Config) Validate() error {
	v := &validation{}
	v.flavors(c)
	v.cohorts(c)
	v.clusterQueues(c)
	v.localQueues(c)
	v.others(c)
	v.operatorStops(c)
	v.admissionChecks(c)
	v.provisioningConfigs(c)
	v.topologies(c)
	v.clusters(c)
	v.admissionFairSharing(c)
	v.reservations(c)
	v.budgets(c)
	return v.faults.Err()
}

func (v *validation) flavors(c *Config) {
	v.flavor = map[string]string{}
	for i, f := range c.Flavors {
		path := fault.Index("resourceFlavors", i)
		v.name(path, f.Name, v.flavor)
		v.prices(path, f.Cost)
		for j, taint := range f.NodeTaints {
			if effects := []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}; !slices.Contains(effects, taint.Effect) {
				v.faults.Add(fault.Index(path+".nodeTaints", j)+".effect", "%q: want one of %s", taint.Effect, strings.Join(effects, ", "))
			}
		}
		for j, t := range f.Tolerations {
			v.oneOf(fault.Index(path+".tolerations", j)+".operator", t.Operator, "Exists", "Equal")
		}
	}
}

func (v *validation) cohorts(c *Config) {
	v.cohort = map[string]string{}
	parent := map[string]string{}
	for i, co := range c.Cohorts {
		path := fault.Index("cohorts", i)
		v.name(path, co.Name, v.cohort)
		parent[co.Name] = co.Parent
		v.groups(path, co.ResourceGroups, true)
		v.weight(path, co.FairSharing)
	}
	for i, co := range c.Cohorts {
		seen := map[string]bool{}
		for at := co.Name; at != ""; at = parent[at] {
			if seen[at] {
				v.faults.Add(fault.Index("cohorts", i)+".parentName", "%q: the parents of cohort %q lead back to it; want a tree, without a cycle", co.Parent, co.Name)
				break
			}
			seen[at] = true
		}
	}
}

// preference is checked as Kueue does, whose default of whenCanPreempt is TryNextFlavor.
func (v *validation) preference(path string, f *FlavorFungibility) {
	v.oneOf(path, f.Preference, BorrowingOverPreemption, PreemptionOverBorrowing)
	tryNext := f.WhenCanBorrow == TryNextFlavor && (f.WhenCanPreempt == TryNextFlavor || f.WhenCanPreempt == "")
	if f.Preference != "" && !tryNext {
		v.faults.Add(path, "%q is for whenCanBorrow %s and whenCanPreempt %s; want both, or no preference", f.Preference, TryNextFlavor, TryNextFlavor)
	}
}

func (v *validation) clusterQueues(c *Config) {
	v.cluster = map[string]string{}
	for i := range c.ClusterQueues {
		q := &c.ClusterQueues[i]
		path := fault.Index("clusterQueues", i)
		v.name(path, q.Name, v.cluster)
		v.groups(path, q.ResourceGroups, false)
		v.weight(path, q.FairSharing)
		v.oneOf(path+".queueingStrategy", q.Strategy, BestEffortFIFO, StrictFIFO, Backfill)
		v.backfill(path, q)
		v.oneOf(path+".quotaCheckStrategy", q.QuotaCheckStrategy, BlockUndeclared, IgnoreUndeclared)
		v.stopPolicy(path, q.StopPolicy)
		v.selector(path+".namespaceSelector", q.NamespaceSelector)
		if f := q.Fungibility; f != nil {
			v.oneOf(path+".flavorFungibility.whenCanBorrow", f.WhenCanBorrow, MayStopSearch, TryNextFlavor, borrowAlias)
			v.oneOf(path+".flavorFungibility.whenCanPreempt", f.WhenCanPreempt, MayStopSearch, TryNextFlavor, preemptAlias)
			v.preference(path+".flavorFungibility.preference", f)
			v.oneOf(path+".flavorFungibility.whenEqual", f.WhenEqual, FirstListed, LowestCost)
			v.oneOf(path+".flavorFungibility.whenNotProvisioned", f.WhenNotProvisioned, MayStopSearch, TryNextFlavor)
			v.notNegative(path+".flavorFungibility.provisionWithinSeconds", f.ProvisionWithinSeconds)
			if f.ProvisionWithinSeconds > 0 && f.WhenNotProvisioned != TryNextFlavor {
				v.faults.Add(path+".flavorFungibility.provisionWithinSeconds", "needs whenNotProvisioned %s", TryNextFlavor)
			}
		}
		v.preemption(path+".preemption", q.Preemption)
		if q.Cohort == "" {
			v.noBorrowing(path, q.ResourceGroups)
		}
	}
}

func (v *validation) preemption(path string, p *Preemption) {
	if p == nil {
		return
	}
	v.oneOf(path+".withinClusterQueue", p.WithinClusterQueue, Never, LowerPriority, LowerOrNewerEqualPriority)
	v.oneOf(path+".reclaimWithinCohort", p.ReclaimWithinCohort, Never, LowerPriority, Any)
	v.notNegative(path+".minRunSeconds", p.MinRunSeconds)
	if b := p.BorrowWithinCohort; b != nil {
		v.oneOf(path+".borrowWithinCohort.policy", b.Policy, Never, LowerPriority)
		if b.Policy == LowerPriority && (p.ReclaimWithinCohort == "" || p.ReclaimWithinCohort == Never) {
			v.faults.Add(path+".borrowWithinCohort", "needs reclaimWithinCohort %s or %s; it is %s", LowerPriority, Any, Never)
		}
	}
}

func (v *validation) operatorStops(c *Config) {
	seen := map[string]map[string]string{} // by namespace
	for i, h := range c.Holds {
		if seen[h.Namespace] == nil {
			seen[h.Namespace] = map[string]string{}
		}
		v.operatorStop(fault.Index("queueHolds", i), h, seen[h.Namespace])
	}
	held := map[string]string{}
	for i, h := range c.ClusterQueueHolds {
		path := fault.Index("clusterQueueHolds", i)
		v.operatorStop(path, h, held)
		if h.Namespace != "" {
			v.faults.Add(path+".namespace", "%q: a clusterQueue has no namespace; leave it out", h.Namespace)
		}
	}
}

func (v *validation) operatorStop(path string, h QueueStop, seen map[string]string) {
	v.name(path, h.Name, seen)
	v.line(path+".namespace", h.Namespace, maxStopNamespace)
	v.order(path, "holds the queue", h.Since, h.By, h.Why)
}

func (v *validation) localQueues(c *Config) {
	seen := map[string]bool{}
	for i, l := range c.LocalQueues {
		path := fault.Index("localQueues", i)
		if l.Name == "" {
			v.faults.Add(path+".name", "is missing")
		}
		if l.Namespace == "" {
			v.faults.Add(path+".namespace", "is missing")
		}
		if seen[l.Namespace+"/"+l.Name] {
			v.faults.Add(path+".name", "%q is a duplicate in namespace %q", l.Name, l.Namespace)
		}
		seen[l.Namespace+"/"+l.Name] = true
		v.known(path+".clusterQueue", "clusterQueue", l.ClusterQueue, v.cluster)
		v.stopPolicy(path, l.StopPolicy)
	}
}

func (v *validation) others(c *Config) {
	seen := map[string]string{}
	for i, p := range c.Priorities {
		v.name(fault.Index("workloadPriorityClasses", i), p.Name, seen)
	}
	if f := c.FairSharing; f != nil {
		for i, s := range f.PreemptionStrategies {
			v.oneOf(fault.Index("fairSharing.preemptionStrategies", i), s, LessThanOrEqualToFinalShare, LessThanInitialShare)
		}
		v.notNegative("fairSharing.usageHalfLifeSeconds", f.UsageHalfLifeSeconds)
	}
}
