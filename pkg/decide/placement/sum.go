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
				s.free[i] = add(s.free[i], multiply(max(0, g.free.at(column)), int64(len(g.nodes))))
			}
		}
	}
	return s
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
		set, pods := &w.PodSets[i], 0
		for _, p := range placements {
			if p.PodSet == set.Name {
				pods += p.Pods
			}
		}
		for i, column := range s.columns {
			if amount := set.Template.Requests[s.fleet.columns.names[column]]; amount > 0 {
				s.free[i] = add(s.free[i], multiply(amount, int64(pods)))
			}
		}
	}
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
