package admission

import (
	"slices"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/workload"
)

// Move gives a started gang the placements kept and places for the pods of rest,
// which have lost theirs, in its cluster and its flavors; it returns all of them.
// Without places for all pods of rest, or when these and those kept break a rule
// on domains, it reports false and nothing has changed.
func (s *State) Move(id workload.ID, kept []workload.Placement, rest []workload.PodSet) ([]workload.Placement, bool) {
	g := s.started[id]
	if g == nil {
		return nil, false
	}
	fleet := s.fleet(g.Cluster)
	fleet.Give(g.Workload, g.Placements)
	fleet.Take(g.Workload, kept)
	lacking := &workload.Workload{PodSets: s.tree.Effective(rest, g.Flavors)}
	verdict := fleet.Solve(lacking, searchBudget)
	fleet.Give(g.Workload, kept)
	all := merged(kept, verdict.Placements)
	if verdict.Outcome != placement.Fits || !fleet.Obeys(g.Workload, all) {
		fleet.Take(g.Workload, g.Placements)
		return nil, false
	}
	g.Placements = all
	fleet.Take(g.Workload, g.Placements)
	s.grown = true // what it left may be of use to others
	return g.Placements, true
}

// merged adds placements to others; a pod set has one per node.
func merged(kept, added []workload.Placement) []workload.Placement {
	all := slices.Clone(kept)
	for _, p := range added {
		i := slices.IndexFunc(all, func(k workload.Placement) bool { return k.PodSet == p.PodSet && k.Node == p.Node })
		if i < 0 {
			all = append(all, p)
		} else {
			all[i].Pods += p.Pods
		}
	}
	return all
}
