package quota

import (
	"cmp"
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Mode is how a gang could be within quota.
type Mode int

// The modes, best first.
const (
	Within     Mode = iota // within what is available now
	Preempting             // if others give quota back
	Impossible             // more than the queue could use if all were free
)

// Assignment is a flavor for each resource of each pod set, with its charges.
type Assignment struct {
	Flavors []workload.PodSetFlavors
	Charges []Charge
}

// Assess is an Assignment judged against present usage.
type Assess struct {
	*Assignment
	Mode Mode
	// Level is how far up the tree the quota comes from: see BorrowingLevel.
	Level int
	// Own: a gang of the queue itself is evicted, as far as that is known.
	Own  bool
	Over *Over // unless Within
}

// maxAssignments bounds the combinations of flavors that are tried for one gang.
const maxAssignments = 64

// Assignments returns the flavors that the pods of the gang may be given, in the order
// in which the queue lists them; when there are none, why. They depend on the pod sets
// and the configuration, not on usage. A pod set is never split across flavors. cut
// reports that there are more than maxAssignments.
func (q *Queue) Assignments(podSets []workload.PodSet) (all []Assignment, cut bool, why *workload.Reason) {
	all = []Assignment{{}}
	for i := range podSets {
		set := &podSets[i]
		if set.Count == 0 {
			continue
		}
		choices, why := q.choices(set)
		if why != nil {
			return nil, false, why
		}
		extended := make([]Assignment, 0, len(all)*len(choices))
		for _, a := range all {
			for _, flavors := range choices {
				if !q.sameInGroup(podSets[:i], a.Flavors, set, flavors) {
					continue
				}
				if len(extended) == maxAssignments {
					cut = true
					break
				}
				extended = append(extended, Assignment{
					Flavors: append(slices.Clip(a.Flavors), workload.PodSetFlavors{PodSet: set.Name, Flavors: flavors}),
				})
			}
		}
		if all = extended; len(all) == 0 {
			return nil, false, q.noGroupFlavor(set)
		}
	}
	for i := range all {
		all[i].Charges = ChargesOf(podSets, all[i].Flavors)
		if all[i].Flavors = slices.DeleteFunc(all[i].Flavors, func(f workload.PodSetFlavors) bool { return len(f.Flavors) == 0 }); len(all[i].Flavors) == 0 {
			all[i].Flavors = nil
		}
	}
	return all, cut, nil
}

// sameInGroup reports whether the flavors of a pod set are those of the earlier sets of
// its pod-set group: in each resource group, all sets of a pod-set group have one flavor.
func (q *Queue) sameInGroup(earlier []workload.PodSet, assigned []workload.PodSetFlavors, set *workload.PodSet, flavors map[resource.Name]string) bool {
	if set.Group == "" {
		return true
	}
	for i := range earlier {
		if earlier[i].Group != set.Group {
			continue
		}
		at := slices.IndexFunc(assigned, func(f workload.PodSetFlavors) bool { return f.PodSet == earlier[i].Name })
		if at < 0 {
			continue
		}
		for _, g := range q.ResourceGroups {
			theirs, own := flavorIn(&g, assigned[at].Flavors), flavorIn(&g, flavors)
			if theirs != "" && own != "" && theirs != own {
				return false
			}
		}
	}
	return true
}

// flavorIn returns the flavor that was given for the resources of a group, or "".
func flavorIn(g *ResourceGroup, flavors map[resource.Name]string) string {
	for _, name := range g.CoveredResources {
		if flavors[name] != "" {
			return flavors[name]
		}
	}
	return ""
}

// choices returns the flavors of one pod set: a map from resource to flavor for
// each combination of a flavor per resource group.
func (q *Queue) choices(set *workload.PodSet) ([]map[resource.Name]string, *workload.Reason) {
	choices := []map[resource.Name]string{nil}
	uncovered := map[resource.Name]bool{}
	for name, amount := range set.Template.Requests {
		if amount > 0 && name != resource.Pods {
			uncovered[name] = true
		}
	}
	for _, g := range q.ResourceGroups {
		var asked []resource.Name
		for _, name := range g.CoveredResources {
			if set.Template.Requests[name] > 0 {
				asked = append(asked, name)
				delete(uncovered, name)
			}
		}
		if len(asked) == 0 {
			continue
		}
		var extended []map[resource.Name]string
		for _, so := range choices {
			for _, f := range g.Flavors {
				if q.tree.mismatch(f.Name, set) != "" {
					continue
				}
				with := maps.Clone(so)
				if with == nil {
					with = map[resource.Name]string{}
				}
				for _, name := range asked {
					with[name] = f.Name
				}
				if !q.tree.twoTopologies(with) {
					extended = append(extended, with)
				}
			}
		}
		if choices = extended; len(choices) == 0 {
			return nil, q.noFlavor(set, &g, asked)
		}
	}
	if len(q.ResourceGroups) > 0 && q.QuotaCheckStrategy != IgnoreUndeclared && len(uncovered) > 0 {
		return nil, q.undeclared(set, slices.Sorted(maps.Keys(uncovered)))
	}
	return choices, nil
}

// ChargesOf returns the charges of pod sets with these flavors, by flavor and resource.
// A resource without a flavor is charged without one.
func ChargesOf(podSets []workload.PodSet, flavors []workload.PodSetFlavors) []Charge {
	amounts := map[FlavorResource]int64{}
	for i := range podSets {
		set := &podSets[i]
		var of map[resource.Name]string
		for _, f := range flavors {
			if f.PodSet == set.Name {
				of = f.Flavors
			}
		}
		for name, amount := range set.Template.Requests.Times(int64(set.Count)) {
			if amount > 0 && (name != resource.Pods || of[name] != "") {
				fr := FlavorResource{of[name], name}
				amounts[fr] = add(amounts[fr], amount)
			}
		}
	}
	charges := make([]Charge, 0, len(amounts))
	for fr, amount := range amounts {
		charges = append(charges, Charge{fr, amount})
	}
	slices.SortFunc(charges, func(a, b Charge) int {
		return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	})
	return charges
}
