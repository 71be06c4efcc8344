package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Limits of Kueue that are kept, so that a Config fits its manifests.
const (
	maxGroups  = 16
	maxFlavors = 64
)

// Validate returns all faults of the Config, each with its place, the value and
// what would be right.
func (c *Config) Validate() error {
	v := &validation{}
	v.flavors(c)
	v.cohorts(c)
	v.clusterQueues(c)
	v.localQueues(c)
	v.others(c)
	return errors.Join(v.faults...)
}

type validation struct {
	faults  []error
	flavor  map[string]bool
	cohort  map[string]bool
	cluster map[string]bool
}

func (v *validation) fault(where, format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// name checks a name and that it is there once.
func (v *validation) name(where, name string, seen map[string]bool) {
	switch {
	case name == "":
		v.fault(where, "has no name")
	case seen[name]:
		v.fault(where, "is there twice")
	}
	seen[name] = true
}

// oneOf checks a value that may be empty.
func (v *validation) oneOf(where, field, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		v.fault(where, "%s %q: want one of %s", field, value, strings.Join(allowed, ", "))
	}
}

func (v *validation) flavors(c *Config) {
	v.flavor = map[string]bool{}
	for _, f := range c.Flavors {
		where := fmt.Sprintf("resourceFlavor %q", f.Name)
		v.name(where, f.Name, v.flavor)
		for _, taint := range f.NodeTaints {
			v.oneOf(where, fmt.Sprintf("nodeTaints: effect of %q", taint.Key), taint.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
		for _, t := range f.Tolerations {
			v.oneOf(where, fmt.Sprintf("tolerations: operator of %q", t.Key), t.Operator, "Exists", "Equal")
		}
	}
}

func (v *validation) cohorts(c *Config) {
	v.cohort = map[string]bool{}
	parent := map[string]string{}
	for _, co := range c.Cohorts {
		where := fmt.Sprintf("cohort %q", co.Name)
		v.name(where, co.Name, v.cohort)
		parent[co.Name] = co.Parent
		v.groups(where, co.ResourceGroups)
		v.weight(where, co.FairSharing)
	}
	for _, co := range c.Cohorts {
		seen := map[string]bool{}
		for at := co.Name; at != ""; at = parent[at] {
			if seen[at] {
				v.fault(fmt.Sprintf("cohort %q", co.Name), "parentName %q: the parents of a cohort lead back to it; a tree has no cycle", co.Parent)
				break
			}
			seen[at] = true
		}
	}
}

func (v *validation) weight(where string, f *FairSharing) {
	if f != nil && f.WeightMilli < 0 {
		v.fault(where, "fairSharing: weight %s is negative; want zero or more", resource.Format(resource.CPU, f.WeightMilli))
	}
}

func (v *validation) clusterQueues(c *Config) {
	v.cluster = map[string]bool{}
	for _, q := range c.ClusterQueues {
		where := fmt.Sprintf("clusterQueue %q", q.Name)
		v.name(where, q.Name, v.cluster)
		v.groups(where, q.ResourceGroups)
		v.weight(where, q.FairSharing)
		v.oneOf(where, "queueingStrategy", q.Strategy, BestEffortFIFO, StrictFIFO, Backfill)
		v.backfill(where, &q)
		v.oneOf(where, "quotaCheckStrategy", q.QuotaCheckStrategy, BlockUndeclared, IgnoreUndeclared)
		v.oneOf(where, "stopPolicy", q.StopPolicy, StopNone, Hold, HoldAndDrain)
		if f := q.Fungibility; f != nil {
			v.oneOf(where, "flavorFungibility: whenCanBorrow", f.WhenCanBorrow, MayStopSearch, TryNextFlavor, borrowAlias)
			v.oneOf(where, "flavorFungibility: whenCanPreempt", f.WhenCanPreempt, MayStopSearch, TryNextFlavor, preemptAlias)
		}
		v.preemption(where, q.Preemption)
		if q.Cohort == "" {
			v.noBorrowing(where, q.ResourceGroups)
		}
	}
}

func (v *validation) backfill(where string, q *ClusterQueue) {
	b := q.Backfill
	if b == nil {
		return
	}
	if q.Strategy != Backfill {
		v.fault(where, "backfill is set, but queueingStrategy is %q; want %s", q.Strategy, Backfill)
	}
	v.oneOf(where, "backfill: order", b.Order, Submission, ShortestBackfill, ShortestFirst)
	if b.PatienceSeconds < 0 {
		v.fault(where, "backfill: patienceSeconds %d is negative; want zero or more", b.PatienceSeconds)
	}
}

func (v *validation) preemption(where string, p *Preemption) {
	if p == nil {
		return
	}
	v.oneOf(where, "preemption: withinClusterQueue", p.WithinClusterQueue, Never, LowerPriority, LowerOrNewerEqualPriority)
	v.oneOf(where, "preemption: reclaimWithinCohort", p.ReclaimWithinCohort, Never, LowerPriority, Any)
	if p.MinRunSeconds < 0 {
		v.fault(where, "preemption: minRunSeconds %d is negative; want zero or more", p.MinRunSeconds)
	}
	if b := p.BorrowWithinCohort; b != nil {
		v.oneOf(where, "preemption: borrowWithinCohort: policy", b.Policy, Never, LowerPriority)
		if b.Policy == LowerPriority && (p.ReclaimWithinCohort == "" || p.ReclaimWithinCohort == Never) {
			v.fault(where, "preemption: borrowWithinCohort needs reclaimWithinCohort LowerPriority or Any; it is Never")
		}
	}
}

// noBorrowing refuses limits that mean nothing without a cohort.
func (v *validation) noBorrowing(where string, groups []ResourceGroup) {
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				if r.BorrowingLimit != nil || r.LendingLimit != nil {
					v.fault(where, "flavor %q: resource %q: borrowingLimit and lendingLimit need a cohort: set cohortName, or leave them out", f.Name, r.Name)
				}
			}
		}
	}
}

func (v *validation) groups(where string, groups []ResourceGroup) {
	if len(groups) > maxGroups {
		v.fault(where, "resourceGroups: %d of them; want at most %d", len(groups), maxGroups)
	}
	covered, flavors := map[resource.Name]bool{}, map[string]bool{}
	for i, g := range groups {
		group := fmt.Sprintf("%s: resourceGroups[%d]", where, i)
		if len(g.CoveredResources) == 0 {
			v.fault(group, "coveredResources is empty; want at least one resource")
		}
		for _, name := range g.CoveredResources {
			if covered[name] {
				v.fault(group, "coveredResources: %q is covered twice; want each resource in one group", name)
			}
			covered[name] = true
		}
		if len(g.Flavors) == 0 || len(g.Flavors) > maxFlavors {
			v.fault(group, "flavors: %d of them; want 1 to %d", len(g.Flavors), maxFlavors)
		}
		for _, f := range g.Flavors {
			if !v.flavor[f.Name] {
				v.fault(group, "flavor %q does not exist; define a resourceFlavor of that name", f.Name)
			}
			if flavors[f.Name] {
				v.fault(group, "flavor %q is there twice; want each flavor in one group, once", f.Name)
			}
			flavors[f.Name] = true
			v.quotas(fmt.Sprintf("%s: flavor %q", group, f.Name), g.CoveredResources, f.Resources)
		}
	}
}

func (v *validation) quotas(where string, covered []resource.Name, quotas []ResourceQuota) {
	seen := map[resource.Name]bool{}
	for _, q := range quotas {
		if !slices.Contains(covered, q.Name) || seen[q.Name] {
			v.fault(where, "resource %q: want each of the coveredResources once: %s", q.Name, join(covered))
		}
		seen[q.Name] = true
		if q.Nominal < 0 {
			v.fault(where, "resource %q: nominalQuota %d is negative; want zero or more", q.Name, q.Nominal)
		}
		if q.LendingLimit != nil && *q.LendingLimit > q.Nominal {
			v.fault(where, "resource %q: lendingLimit %s is more than the nominalQuota %s; want at most that",
				q.Name, resource.Format(q.Name, *q.LendingLimit), resource.Format(q.Name, q.Nominal))
		}
		for _, limit := range []*int64{q.BorrowingLimit, q.LendingLimit} {
			if limit != nil && *limit < 0 {
				v.fault(where, "resource %q: a limit of %d is negative; want zero or more", q.Name, *limit)
			}
		}
	}
	for _, name := range covered {
		if !seen[name] {
			v.fault(where, "has no quota for %q; want each of the coveredResources: %s", name, join(covered))
		}
	}
}

func join(names []resource.Name) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

func (v *validation) localQueues(c *Config) {
	seen := map[string]bool{}
	for _, l := range c.LocalQueues {
		where := fmt.Sprintf("localQueue %q of namespace %q", l.Name, l.Namespace)
		v.name(where, l.Namespace+"/"+l.Name, seen)
		if l.Name == "" || l.Namespace == "" {
			v.fault(where, "want a name and a namespace")
		}
		if !v.cluster[l.ClusterQueue] {
			v.fault(where, "clusterQueue %q does not exist", l.ClusterQueue)
		}
		v.oneOf(where, "stopPolicy", l.StopPolicy, StopNone, Hold, HoldAndDrain)
	}
}

func (v *validation) others(c *Config) {
	seen := map[string]bool{}
	for _, p := range c.Priorities {
		v.name(fmt.Sprintf("workloadPriorityClass %q", p.Name), p.Name, seen)
	}
	if f := c.FairSharing; f != nil {
		for _, s := range f.PreemptionStrategies {
			v.oneOf("fairSharing", "preemptionStrategies", s, LessThanOrEqualToFinalShare, LessThanInitialShare)
		}
		if f.UsageHalfLifeSeconds < 0 {
			v.fault("fairSharing", "usageHalfLifeSeconds %d is negative; want zero or more", f.UsageHalfLifeSeconds)
		}
	}
}

// tolerates reports whether pods of the template may go to nodes of the flavor
// that have its taints, the flavor's own tolerations included.
func (f *Flavor) tolerates(t *workload.Template) bool {
	for _, taint := range f.NodeTaints {
		if taint.Effect != "PreferNoSchedule" && !taint.Tolerated(t.Tolerations) && !taint.Tolerated(f.Tolerations) {
			return false
		}
	}
	return true
}
