package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// Replace gives a started gang the placements kept, and places for the pods of rest, which
// have lost theirs, in its cluster and its flavors; it returns all of them. It reports
// false and changes nothing if the pods of rest have no places, or none that obey the
// gang's topology constraints together with those kept. Nodes that are reserved for others
// while the gang may run are none of them.
func (s *State) Replace(id workload.ID, kept []workload.Placement, rest []workload.PodSet, now time.Time) ([]workload.Placement, bool) {
	g := s.started[id]
	if g == nil {
		return nil, false
	}
	fleet := s.fleet(g.Cluster)
	savepoint := fleet.Begin()
	fleet.Release(g.Workload, g.Placements)
	fleet.Allocate(g.Workload, kept)
	s.closeReserved(g, fleet, now)
	lacking := &workload.Workload{PodSets: s.tree.Effective(rest, g.Flavors)}
	verdict := fleet.Solve(lacking, searchBudget)
	fleet.Rollback(savepoint)
	if verdict.Outcome != placement.Fits {
		return nil, false
	}
	all := merged(kept, verdict.Placements)
	fleet.Release(g.Workload, g.Placements)
	if !fleet.Obeys(s.inTopology(g, g.Workload.PodSets, kept), all) {
		fleet.Allocate(g.Workload, g.Placements)
		return nil, false
	}
	g.Placements = all
	g.noteResized()
	fleet.Allocate(g.Workload, g.Placements)
	s.noteCapacity(true) // others may use the places it left
	return g.Placements, true
}

// inTopology returns a started gang with pod sets in the domains of the Topologies of its flavors.
// Of a level they leave out what nodes lack on which the gang has these places: a Topology that came
// later does not keep it from others.
func (s *State) inTopology(g *Started, sets []workload.PodSet, places []workload.Placement) *workload.Workload {
	w, fleet := *g.Workload, s.fleet(g.Cluster)
	w.PodSets = slices.Clone(s.tree.InTopology(sets, g.Flavors))
	for i := range w.PodSets {
		for _, p := range places {
			if n, there := fleet.Node(p.Node); there && p.PodSet == w.PodSets[i].Name {
				w.PodSets[i] = w.PodSets[i].On(n.Labels)
			}
		}
	}
	return &w
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
