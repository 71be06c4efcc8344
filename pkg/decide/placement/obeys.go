package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// Obeys reports whether the places of all pods of a gang obey its rules on domains. It
// is for places that were not found together, such as those of a gang that lost some of
// its pods. It does not check resources.
func (f *Fleet) Obeys(w *workload.Workload, placements []workload.Placement) bool {
	p := f.newProblem(w, 0)
	all := make([]int, len(p.kinds))
	for i := range all {
		all[i] = i
	}
	s := p.newSearch(all)
	var nodes []*node
	var on []countVector
	for _, at := range placements {
		n := f.nodes[at.Node]
		k := slices.IndexFunc(p.kinds, func(k kind) bool { return k.set.Name == at.PodSet })
		if n == nil || !n.present || k < 0 {
			return false
		}
		i := slices.Index(nodes, n)
		if i < 0 {
			i = len(nodes)
			nodes, on = append(nodes, n), append(on, make(countVector, len(p.kinds)))
		}
		on[i][k] += at.Pods
	}
	s.arrange(nodes)
	s.count(nodes)
	t := &podSearch{search: s, nodes: nodes, on: on, tops: map[string]*topology{}}
	for i, key := range s.levels {
		t.tops[key] = s.topologies[i]
	}
	for i := range nodes {
		for k := range p.kinds {
			if on[i][k] == 0 {
				continue
			}
			on[i][k]-- // as if it were the last to come
			allowed := t.allowed(k, i)
			on[i][k]++
			if !allowed {
				return false
			}
		}
	}
	return t.obeyed()
}
