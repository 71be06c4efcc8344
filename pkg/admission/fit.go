package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// searchBudget bounds the steps of the exact search for one gang on one cluster.
const searchBudget = 20_000

// scratch is what a decision in the making has used up, over a state that stays
// as it is.
type scratch struct {
	state *State
	free  map[*node]resource.List // of nodes touched by this decision
	// eligible remembers which classes of nodes take a template.
	eligible map[*workload.Template]map[string]bool
}

func newScratch(s *State) *scratch {
	return &scratch{state: s, free: map[*node]resource.List{}, eligible: map[*workload.Template]map[string]bool{}}
}

func (s *scratch) freeOn(n *node) resource.List {
	if free, touched := s.free[n]; touched {
		return free
	}
	return n.free
}

// take uses up the places of a gang that is admitted.
func (s *scratch) take(w *workload.Workload, cluster string, placements []workload.Placement) {
	for _, p := range placements {
		n := s.state.nodes[NodeKey{cluster, p.Node}]
		i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == p.PodSet })
		s.free[n] = s.freeOn(n).Minus(w.PodSets[i].Template.Requests.Times(int64(p.Pods)))
	}
}

// candidates returns the nodes that only resources keep from taking the
// template's pods.
func (s *scratch) candidates(t *workload.Template, nodes []*node) []*node {
	verdicts, known := s.eligible[t]
	if !known {
		verdicts = map[string]bool{}
		s.eligible[t] = verdicts
	}
	perNode := len(t.Affinity) > 0 || t.NodeSelector[hostnameLabel] != ""
	var eligible []*node
	for _, n := range nodes {
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

// part is a pod set in the course of a search.
type part struct {
	set        *workload.PodSet
	candidates []*node
}

// fit looks for a node for each pod of the gang among the nodes of one cluster.
// It returns the placements, or why there are none.
func (s *scratch) fit(w *workload.Workload, nodes []*node) ([]workload.Placement, *workload.Reason) {
	parts := make([]part, 0, len(w.PodSets))
	for i := range w.PodSets {
		set := &w.PodSets[i]
		if set.Count == 0 {
			continue
		}
		p := part{set, s.candidates(&set.Template, nodes)}
		if short := s.shortage(p, nodes); short != nil {
			return nil, fitReason(short)
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
	found := &assignment{scratch: s, free: map[*node]resource.List{}}
	if stuck := found.greedy(parts); stuck == nil {
		return found.placements(w), nil
	}
	if short := s.shortageInSum(parts, nodes); short != nil {
		return nil, fitReason(short)
	}
	search := &assignment{scratch: s, free: map[*node]resource.List{}, budget: searchBudget}
	if search.exhaustive(parts, 0, 0) {
		return search.placements(w), nil
	}
	if search.budget <= 0 {
		return nil, &workload.Reason{
			Kind:    workload.ReasonUnknown,
			Message: "no places were found for all pods together within the search budget; it is tried again when capacity changes",
		}
	}
	return nil, fitReason(s.shortageTogether(parts, nodes))
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
