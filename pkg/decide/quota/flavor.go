package quota

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// mismatch returns why pods of the set cannot be given a flavor.
func (t *Tree) mismatch(flavor string, set *workload.PodSet) string {
	f := t.flavors[flavor]
	for key, value := range f.NodeLabels {
		if asked, selects := set.Template.NodeSelector[key]; selects && asked != value {
			return "node selector does not match"
		}
	}
	if !f.tolerates(&set.Template) {
		return "untolerated taint"
	}
	if levels := t.levels[flavor]; len(levels) > 0 {
		return outsideLevels(f.TopologyName, levels, set.Topology)
	}
	return ""
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

// Effective returns the pod sets with the terms of their flavors: they go only to nodes
// with the labels of the flavor, tolerate its taints, and have the domains of its Topology.
func (t *Tree) Effective(podSets []workload.PodSet, flavors []workload.PodSetFlavors) []workload.PodSet {
	if len(flavors) == 0 {
		return podSets
	}
	effective := slices.Clone(podSets)
	for i := range effective {
		set := &effective[i]
		for _, f := range flavors {
			if f.PodSet == set.Name {
				t.narrow(&set.Template, f)
				*set = set.InLevels(t.levelsFor(f.Flavors))
			}
		}
	}
	return effective
}

func (t *Tree) narrow(template *workload.Template, f workload.PodSetFlavors) {
	terms := t.Terms(f)
	if len(terms.NodeSelector) > 0 {
		selector := maps.Clone(template.NodeSelector)
		if selector == nil {
			selector = map[string]string{}
		}
		maps.Copy(selector, terms.NodeSelector)
		template.NodeSelector = selector
	}
	template.Tolerations = append(slices.Clip(template.Tolerations), terms.Tolerations...)
}

// Terms returns what the flavors of a pod set add to its pods. A flavor that is no
// longer configured adds nothing.
func (t *Tree) Terms(f workload.PodSetFlavors) workload.PodSetTerms {
	terms := workload.PodSetTerms{PodSet: f.PodSet}
	for _, name := range slices.Compact(slices.Sorted(maps.Values(f.Flavors))) {
		flavor := t.flavors[name]
		if flavor == nil {
			continue
		}
		if len(flavor.NodeLabels) > 0 && terms.NodeSelector == nil {
			terms.NodeSelector = map[string]string{}
		}
		maps.Copy(terms.NodeSelector, flavor.NodeLabels)
		terms.Tolerations = append(terms.Tolerations, flavor.Tolerations...)
	}
	return terms
}
