package placement

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// part is a pod set in the course of a search.
type part struct {
	set        *workload.PodSet
	candidates []*node
}

// Solve looks for a node for each pod of the gang, in at most budget steps of
// search. It does not change the fleet.
func (f *Fleet) Solve(w *workload.Workload, budget int) Verdict {
	parts := make([]part, 0, len(w.PodSets))
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if set.Count == 0 {
			continue
		}
		p := part{set, f.candidates(&set.Template)}
		if short := f.shortage(p); short != nil {
			return doesNotFit(short)
		}
		parts = append(parts, p)
	}
	// Hardest first: who has the fewest nodes, then who asks most.
	slices.SortStableFunc(parts, func(a, b part) int {
		return cmp.Or(
			cmp.Compare(scarce(b.set), scarce(a.set)),
			cmp.Compare(len(a.candidates), len(b.candidates)),
			cmp.Compare(b.set.Template.Requests[resource.CPU], a.set.Template.Requests[resource.CPU]))
	})
	found := &assignment{free: map[*node]resource.List{}}
	if stuck := found.greedy(parts); stuck == nil {
		return Verdict{Outcome: Fits, Placements: found.placements(w)}
	}
	if short := f.shortageInSum(parts); short != nil {
		return doesNotFit(short)
	}
	search := &assignment{free: map[*node]resource.List{}, budget: budget}
	fits := search.exhaustive(parts, 0, 0)
	steps := budget - search.budget
	switch {
	case fits:
		return Verdict{Outcome: Fits, Placements: search.placements(w), Steps: steps}
	case search.budget <= 0:
		return Verdict{Outcome: Unknown, Steps: steps}
	}
	verdict := doesNotFit(f.shortageTogether(parts))
	verdict.Steps = steps
	return verdict
}

// candidates returns the nodes that only resources keep from taking the
// template's pods.
func (f *Fleet) candidates(t *workload.Template) []*node {
	verdicts := map[string]bool{}
	perNode := len(t.Affinity) > 0 || t.NodeSelector[hostnameLabel] != ""
	var eligible []*node
	for _, n := range f.sorted {
		takes, known := verdicts[n.class]
		if !known || perNode {
			takes = n.Refuses(t) == ""
			verdicts[n.class] = takes
		}
		if takes {
			eligible = append(eligible, n)
		}
	}
	return eligible
}

// scarce is the number of extended resources, such as GPUs, that a pod of the
// set asks for.
func scarce(set *workload.PodSet) int64 {
	var units int64
	for name, amount := range set.Template.Requests {
		if extended(name) {
			units += amount
		}
	}
	return units
}

func extended(name resource.Name) bool {
	switch name {
	case resource.CPU, resource.Memory, resource.EphemeralStorage, resource.Pods:
		return false
	}
	return !resource.InBytes(name)
}
