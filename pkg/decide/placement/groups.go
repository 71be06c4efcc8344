package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// groupOf returns the two kinds of the pod-set group of a kind, the one of a single pod first; nil where
// there is none.
func (p *problem) groupOf(kind int) []int {
	set := p.kinds[kind].set
	if set.Group == "" || set.Topology == nil || set.Topology.SliceSize > 1 {
		return nil
	}
	var kinds []int
	for i := range p.kinds {
		if p.kinds[i].set.Group == set.Group {
			kinds = append(kinds, i)
		}
	}
	if len(kinds) != 2 {
		return nil
	}
	if p.kinds[kinds[0]].count > 1 {
		slices.Reverse(kinds)
	}
	if p.kinds[kinds[0]].count > 1 {
		return nil
	}
	return kinds
}

// gathered returns the kinds of groupOf when they prefer one domain, and no rule binds one of them.
func (p *problem) gathered(kind int) []int {
	kinds := p.groupOf(kind)
	if kinds == nil || p.kinds[kind].set.Topology.Mode != workload.TopologyPreferred || p.bound(kinds[0]) != nil || p.bound(kinds[1]) != nil {
		return nil
	}
	return kinds
}

// gather places the kinds of a pod-set group, as Kueue does: in one domain of the level that they
// prefer, else in one of the next level up, and else in as few domains as there can be. It
// places nothing, and reports false, where that leaves a pod without a place.
func (p *packing) gather(kinds []int) bool {
	levels := p.levelsOf(kinds[1])
	keys := workload.LevelsDownTo(p.kinds[kinds[1]].set.Topology.Level)
	for i, key := range slices.Backward(keys) {
		within := levels[i+1:]
		if p.fillOneDomain(&rule{kind: bind, key: key, kinds: kinds}, func(nodes []*node) bool { return p.fillGroup(kinds, nodes, within) }) {
			return true
		}
	}
	before := p.copyBins()
	if p.fillGroup(kinds, p.fleet.inOrder(), levels) {
		return true
	}
	p.bins = before
	return false
}

// fillBound places the kinds of a bind rule on nodes of a domain: those of a pod-set group near each
// other in its Topology.
func (p *packing) fillBound(kinds []int, nodes []*node) bool {
	if group := p.groupOf(kinds[0]); group != nil && len(kinds) == 2 && slices.Contains(kinds, group[0]) && slices.Contains(kinds, group[1]) {
		if levels := p.levelsOf(group[1]); len(levels) > 0 {
			before := p.copyBins()
			if p.fillGroup(group, nodes, levels) {
				return true
			}
			p.bins = before
		}
	}
	return p.fillAll(kinds, nodes)
}

// fillGroup places the single pod of the first kind, and the pods of the second one, in as few domains
// as there can be, with as many as can be in the domain of the single pod.
func (p *packing) fillGroup(kinds []int, nodes []*node, levels []level) bool {
	count := p.kinds[kinds[1]].count
	for ; ; levels = levels[1:] {
		n := p.nodeForSingle(kinds, nodes, levels)
		if n == nil {
			return false
		}
		if len(levels) < 2 {
			p.put(kinds[0], n)
			return p.fillAround(n, kinds[1], count, nodes, levels)
		}
		own, others := divided(n, nodes, levels[0])
		if left := count - p.roomWith(n, kinds, own, levels[1:]); left > 0 {
			chosen, left := p.choose(kinds[1], left, others, levels)
			if left > 0 {
				return false
			}
			for _, s := range chosen {
				own = append(own, s.nodes...)
			}
		}
		nodes = own
	}
}

// divided returns nodes in the domain of a node, and those outside.
func divided(n *node, nodes []*node, in level) (own, others []*node) {
	own, others = []*node{}, []*node{} // nil would be all nodes of the fleet
	for _, other := range nodes {
		if of := in.topology.of; of[other.slot] == of[n.slot] {
			own = append(own, other)
		} else {
			others = append(others, other)
		}
	}
	return own, others
}

// nodeForSingle returns the node for the single pod of the first kind: in the domain that takes most
// pods of the second kind with it or, of several that take all, the fewest. It returns nil for
// none.
func (p *packing) nodeForSingle(kinds []int, nodes []*node, levels []level) *node {
	if len(levels) == 0 {
		q := &spots{packing: p, kind: kinds[0]}
		q.addNodes(nodes)
		return q.best()
	}
	var chosen *node
	room, count := 0, p.kinds[kinds[1]].count
	for _, s := range p.shares(levels[0].topology, nodes) {
		n := p.nodeForSingle(kinds, s.nodes, levels[1:])
		if n == nil {
			continue
		}
		others := p.roomWith(n, kinds, s.nodes, levels[1:])
		if chosen == nil || (room < count && others > room) || (others >= count && others < room) {
			chosen, room = n, others
		}
	}
	return chosen
}

// roomWith returns how many pods of the second kind nodes take with the single pod of the first
// kind on one of them.
func (p *packing) roomWith(n *node, kinds []int, nodes []*node, levels []level) int {
	taken, touched := p.bins[n]
	p.put(kinds[0], n)
	room := p.capacity(kinds[1], nodes, levels, 1<<30)
	if touched {
		p.bins[n] = taken
	} else {
		delete(p.bins, n)
	}
	return room
}

// fillAround is fillLevels for one level at most, with the domain of a node first.
func (p *packing) fillAround(n *node, kind, pods int, nodes []*node, levels []level) bool {
	if len(levels) == 0 {
		return p.fill(kind, pods, nodes)
	}
	own, others := divided(n, nodes, levels[0])
	part := p.capacity(kind, own, levels[1:], pods)
	return p.fill(kind, part, own) && p.fillLevels(kind, pods-part, others, levels)
}
