package quota

import (
	"iter"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// Limits of Kueue that are kept, so that a Config fits its manifests.
const (
	maxGroups  = 16
	maxFlavors = 64
)

// noBorrowing refuses limits that have no meaning without a cohort.
func (v *validation) noBorrowing(path string, groups []ResourceGroup) {
	eachQuota(path, groups, func(at string, q *ResourceQuota) {
		for field, limit := range q.limits() {
			if limit != nil {
				v.faults.Add(fault.Key(at, field), "needs a cohort: set cohortName, or leave it out")
			}
		}
	})
}

// eachQuota calls visit with each quota of the groups and its path.
func eachQuota(path string, groups []ResourceGroup, visit func(path string, q *ResourceQuota)) {
	for i := range groups {
		for j := range groups[i].Flavors {
			flavor := fault.Index(fault.Index(path+".resourceGroups", i)+".flavors", j)
			for k := range groups[i].Flavors[j].Resources {
				visit(fault.Index(flavor+".resources", k), &groups[i].Flavors[j].Resources[k])
			}
		}
	}
}

// limits are the limits of a quota by the names of their fields.
func (q *ResourceQuota) limits() iter.Seq2[string, *int64] {
	return func(yield func(string, *int64) bool) {
		_ = yield("borrowingLimit", q.BorrowingLimit) && yield("lendingLimit", q.LendingLimit)
	}
}

func (v *validation) groups(path string, groups []ResourceGroup, ofCohort bool) {
	if len(groups) > maxGroups {
		v.faults.Add(path+".resourceGroups", "%d of them; want at most %d", len(groups), maxGroups)
	}
	covered, flavors := map[resource.Name]bool{}, map[string]bool{}
	for i, g := range groups {
		group := fault.Index(path+".resourceGroups", i)
		if len(g.CoveredResources) == 0 {
			v.faults.Add(group+".coveredResources", "is empty; want at least one resource, such as nvidia.com/gpu")
		}
		for j, name := range g.CoveredResources {
			if covered[name] {
				v.faults.Add(fault.Index(group+".coveredResources", j), "%q is covered twice; want each resource in one group", name)
			}
			covered[name] = true
		}
		if len(g.Flavors) == 0 || len(g.Flavors) > maxFlavors {
			v.faults.Add(group+".flavors", "%d of them; want 1 to %d", len(g.Flavors), maxFlavors)
		}
		for j, f := range g.Flavors {
			at := fault.Index(group+".flavors", j)
			v.known(at+".name", "resourceFlavor", f.Name, v.flavor)
			if flavors[f.Name] {
				v.faults.Add(at+".name", "%q is a duplicate; want each flavor in one group, once", f.Name)
			}
			flavors[f.Name] = true
			v.quotas(at, g.CoveredResources, f.Resources, ofCohort)
		}
	}
}

func (v *validation) quotas(path string, covered []resource.Name, quotas []ResourceQuota, ofCohort bool) {
	seen := map[resource.Name]bool{}
	for i := range quotas {
		q := &quotas[i]
		at := fault.Index(path+".resources", i)
		if !slices.Contains(covered, q.Name) || seen[q.Name] {
			v.faults.Add(at+".name", "%q: want each of the coveredResources once: %s", q.Name, join(covered))
		}
		seen[q.Name] = true
		v.notNegative(at+".nominalQuota", q.Nominal)
		// As in Kueue, that of a cohort bounds what the queues below it lend to others.
		if !ofCohort && q.LendingLimit != nil && *q.LendingLimit > q.Nominal {
			v.faults.Add(at+".lendingLimit", "%s is more than the nominalQuota %s; want at most that",
				resource.Format(q.Name, *q.LendingLimit), resource.Format(q.Name, q.Nominal))
		}
		for field, limit := range q.limits() {
			if limit != nil {
				v.notNegative(fault.Key(at, field), *limit)
			}
		}
	}
	for _, name := range covered {
		if !seen[name] {
			v.faults.Add(path+".resources", "has no quota for %q; want one for each of the coveredResources: %s", name, join(covered))
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
