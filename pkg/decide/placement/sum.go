package placement

import (
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Sum is what is free on all nodes together of the resources that gangs request. Gangs that
// request more than the sum do not fit, on whatever nodes; others may not fit either. It
// spares searches that need every node.
type Sum struct {
	fleet   *Fleet
	columns []int
	asked   vector // by place in columns, as free
	free    vector
	unknown bool // they request a resource that no node has
	// overdrawn are the nodes with less than nothing free, by column as free: what ends there
	// first makes up for that. Zero of others. Nil without such nodes.
	overdrawn map[string]vector
}

// Sum adds up what is free of what the gangs request together.
func (f *Fleet) Sum(gangs ...*workload.Workload) *Sum {
	f.refile()
	s := &Sum{fleet: f}
	for _, w := range gangs {
		for i := range w.PodSets {
			set := &w.PodSets[i]
			for name, amount := range set.Template.Requests { // sums, so the order does not matter
				if amount > 0 && set.Count > 0 {
					s.ask(name, multiply(amount, int64(set.Count)))
				}
			}
		}
	}
	s.free = make(vector, len(s.columns))
	for _, c := range f.classList {
		for _, g := range c.groups {
			for i, column := range s.columns {
				if free := g.free.at(column); free >= 0 {
					s.free[i] = add(s.free[i], multiply(free, int64(len(g.nodes))))
				} else {
					s.overdraw(g, i, free)
				}
			}
		}
	}
	return s
}

// overdraw notes that nodes have less than nothing free, as in a what-if that allocates more than
// there is.
func (s *Sum) overdraw(g *group, i int, free int64) {
	if s.overdrawn == nil {
		s.overdrawn = map[string]vector{}
	}
	for _, n := range g.nodes {
		if s.overdrawn[n.Name] == nil {
			s.overdrawn[n.Name] = make(vector, len(s.columns))
		}
		s.overdrawn[n.Name][i] = free
	}
}

func (s *Sum) ask(name resource.Name, amount int64) {
	column, known := s.fleet.columns.index[name]
	if !known {
		s.unknown = true
		return
	}
	for i, other := range s.columns {
		if other == column {
			s.asked[i] = add(s.asked[i], amount)
			return
		}
	}
	s.columns, s.asked = append(s.columns, column), append(s.asked, amount)
}

// Release adds what the end of a gang frees at most.
func (s *Sum) Release(w *workload.Workload, placements []workload.Placement) {
	for i := range w.PodSets {
		set := &w.PodSets[i]
		for i, column := range s.columns {
			amount := set.Template.Requests[s.fleet.columns.names[column]]
			if amount <= 0 {
				continue
			}
			for _, p := range placements {
				if p.PodSet == set.Name {
					s.free[i] = add(s.free[i], s.beyondOverdrawn(p.Node, i, multiply(amount, int64(p.Pods))))
				}
			}
		}
	}
}

// beyondOverdrawn is what is left of an amount that is freed on a node.
func (s *Sum) beyondOverdrawn(node string, i int, amount int64) int64 {
	lacks := s.overdrawn[node]
	if lacks == nil || lacks[i] >= 0 {
		return amount
	}
	now := add(lacks[i], amount)
	lacks[i] = min(now, 0)
	return max(now, 0)
}

// Enough reports whether the sum is as much as the gangs request.
func (s *Sum) Enough() bool {
	for i, asked := range s.asked {
		if asked > s.free[i] {
			return false
		}
	}
	return !s.unknown
}
