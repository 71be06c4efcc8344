package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// gathered returns the kinds of the pod-set group of a kind when they prefer one domain, which they
// then share as in Kueue; nil where there is no other, or a rule binds one of them.
func (p *problem) gathered(kind int) []int {
	set := p.kinds[kind].set
	if set.Group == "" || set.Topology == nil || set.Topology.Mode != workload.TopologyPreferred {
		return nil
	}
	var kinds []int
	for i := range p.kinds {
		if p.kinds[i].set.Group == set.Group {
			kinds = append(kinds, i)
		}
	}
	if len(kinds) < 2 || slices.ContainsFunc(kinds, func(i int) bool { return p.bound(i) != nil }) {
		return nil
	}
	return kinds
}

// gather places kinds in one domain of the level that they prefer, or else of the next one up. It
// places nothing, and reports false, where no domain takes all.
func (p *packing) gather(kinds []int) bool {
	for _, key := range slices.Backward(workload.LevelsDownTo(p.kinds[kinds[0]].set.Topology.Level)) {
		if p.fillOneDomain(&rule{kind: bind, key: key, kinds: kinds}) {
			return true
		}
	}
	return false
}
