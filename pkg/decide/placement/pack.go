package placement

import (
	"slices"
)

// packable reports whether packing supports the rules of the gang.
func (p *problem) packable() bool {
	bound := make([]int, len(p.kinds))
	for _, r := range p.rules {
		switch r.kind {
		case spread:
			return false
		case slice:
			if p.kinds[r.kinds[0]].count%r.size != 0 {
				return false
			}
		case apart:
			if r.key != perNode {
				return false
			}
		case bind:
			for _, k := range r.kinds {
				if bound[k]++; bound[k] > 1 {
					return false
				}
			}
		}
	}
	return true
}

// pack places all kinds, the hardest first. It returns the placement and the first kind
// that did not fit wholly, or nil.
func (p *problem) pack() (*packing, *kind) {
	packed, stuck, gathered := p.packAll(true)
	if stuck != nil && gathered { // a preference keeps nothing out
		packed, stuck, _ = p.packAll(false)
	}
	return packed, stuck
}

// packAll is pack, with or without the preferences of pod-set groups. It reports whether it obeyed
// one.
func (p *problem) packAll(gather bool) (k *packing, stuck *kind, gathered bool) {
	k = &packing{problem: p, bins: make(map[*node]bin, len(p.kinds))}
	k.typical, k.weight = p.fleet.typicalPods()
	done := make([]bool, len(p.kinds))
	for _, i := range p.hardestFirst() {
		if done[i] {
			continue
		}
		together := []int{i}
		if r := p.bound(i); r != nil {
			if !k.fillOneDomain(r, func(nodes []*node) bool { return k.fillBound(r.kinds, nodes) }) {
				return k, &p.kinds[i], gathered
			}
			together = r.kinds
		} else if group := p.gathered(i); gather && group != nil && !slices.ContainsFunc(group, func(j int) bool { return done[j] }) && k.gather(group) {
			together, gathered = group, true
		} else if !k.fill(i, p.kinds[i].count, nil) {
			return k, &p.kinds[i], gathered
		}
		for _, j := range together {
			done[j] = true
		}
	}
	return k, nil, gathered
}
