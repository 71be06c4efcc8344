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
	k := &packing{problem: p, bins: make(map[*node]bin, len(p.kinds))}
	k.typical, k.weight = p.fleet.typicalPods()
	done := make([]bool, len(p.kinds))
	for _, i := range p.hardestFirst() {
		if done[i] {
			continue
		}
		if r := p.bound(i); r != nil {
			for _, j := range r.kinds {
				done[j] = true
			}
			if !k.fillOneDomain(r) {
				return k, &p.kinds[i]
			}
		} else if !k.fill(i, p.kinds[i].count, nil) {
			return k, &p.kinds[i]
		}
	}
	return k, nil
}

// bound returns the rule that binds a kind to one domain, nil when there is none.
func (p *problem) bound(kind int) *rule {
	for i, r := range p.rules {
		if r.kind == bind && slices.Contains(r.kinds, kind) {
			return &p.rules[i]
		}
	}
	return nil
}
