package state

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// newUpdates returns what an answer adds to the pods of a workload beyond what they have and
// other checks add, or why it cannot be added.
func newUpdates(e *entry, updates []workload.PodSetUpdate) (added []workload.PodSetUpdate, conflict string) {
	for _, u := range updates {
		i := slices.IndexFunc(e.PodSets, func(set workload.PodSet) bool { return set.Name == u.PodSet })
		if i < 0 {
			return nil, fmt.Sprintf("podSetUpdates are for %q, and the workload has no pod set of that name", u.PodSet)
		}
		others := []workload.PodSetUpdate{{NodeSelector: e.PodSets[i].Template.NodeSelector, Tolerations: e.PodSets[i].Template.Tolerations}}
		others = append(others, e.checks().Updates(u.PodSet)...)
		u.NodeSelector, u.Labels, u.Annotations = maps.Clone(u.NodeSelector), maps.Clone(u.Labels), maps.Clone(u.Annotations)
		for _, other := range others {
			for _, of := range []struct {
				field       string
				mine, their map[string]string
			}{{"nodeSelector", u.NodeSelector, other.NodeSelector}, {"labels", u.Labels, other.Labels}, {"annotations", u.Annotations, other.Annotations}} {
				for _, key := range slices.Sorted(maps.Keys(of.mine)) {
					value, there := of.their[key]
					if there && value != of.mine[key] {
						return nil, fmt.Sprintf("podSetUpdates: %s %s of pod set %q is %q already, and the answer has %q", of.field, key, u.PodSet, value, of.mine[key])
					}
					if there {
						delete(of.mine, key)
					}
				}
			}
			u.Tolerations = slices.DeleteFunc(slices.Clone(u.Tolerations), func(t workload.Toleration) bool { return slices.Contains(other.Tolerations, t) })
		}
		if len(u.Labels)+len(u.Annotations)+len(u.NodeSelector)+len(u.Tolerations) > 0 {
			added = append(added, u)
		}
	}
	return added, ""
}

// addUpdates adds updates to the pods, by pod set, as far as they decide where the pods go. The
// workload does not wait meanwhile.
func addUpdates(e *entry, of func(podSet string) []workload.PodSetUpdate) {
	sets := slices.Clone(e.PodSets)
	for i := range sets {
		t := &sets[i].Template
		for _, u := range of(sets[i].Name) {
			if len(u.NodeSelector) > 0 {
				selector := maps.Clone(t.NodeSelector)
				if selector == nil {
					selector = map[string]string{}
				}
				maps.Copy(selector, u.NodeSelector)
				t.NodeSelector = selector
			}
			for _, toleration := range u.Tolerations {
				if !slices.Contains(t.Tolerations, toleration) {
					t.Tolerations = append(slices.Clip(t.Tolerations), toleration)
				}
			}
		}
	}
	e.PodSets = sets
}

// dropUpdates is the reverse of addUpdates.
func dropUpdates(e *entry, of func(podSet string) []workload.PodSetUpdate) {
	if !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool { return len(of(set.Name)) > 0 }) {
		return
	}
	sets := slices.Clone(e.PodSets)
	for i := range sets {
		t := &sets[i].Template
		for _, u := range of(sets[i].Name) {
			selector := maps.Clone(t.NodeSelector)
			maps.DeleteFunc(selector, func(key, _ string) bool { _, added := u.NodeSelector[key]; return added })
			if len(selector) == 0 {
				selector = nil
			}
			t.NodeSelector = selector
			t.Tolerations = slices.DeleteFunc(slices.Clone(t.Tolerations), func(have workload.Toleration) bool { return slices.Contains(u.Tolerations, have) })
			if len(t.Tolerations) == 0 {
				t.Tolerations = nil
			}
		}
	}
	e.PodSets = sets
}

// addedTerms are what the checks and the request for nodes add to the pods of a workload.
func addedTerms(e *entry) (terms []workload.PodSetTerms) {
	for _, set := range e.PodSets {
		for _, u := range append(e.checks().Updates(set.Name), e.Provisioning.UpdatesOf(set.Name)...) {
			terms = append(terms, workload.PodSetTerms{
				PodSet: set.Name, Labels: u.Labels, Annotations: u.Annotations, NodeSelector: u.NodeSelector, Tolerations: u.Tolerations,
			})
		}
	}
	return terms
}
