package placement

import (
	"cmp"
	"slices"
)

// triedDomains bounds the domains that packing tries for a gang that must be in one;
// the exact search tries all.
const triedDomains = 8

// fillOneDomain has all kinds of a bind rule placed in one domain, the one with the least
// room left afterwards.
func (p *packing) fillOneDomain(r *rule, fill func(nodes []*node) bool) bool {
	type candidate struct {
		share
		spare int
	}
	var candidates []candidate
	for _, s := range p.shares(p.fleet.topologyOf(r.key), p.fleet.inOrder()) {
		spare := 0
		for _, k := range r.kinds {
			count := p.kinds[k].count
			room := p.capacity(k, s.nodes, p.levelsOf(k), 1<<30)
			if room < count {
				spare = -1
				break
			}
			spare += room - count
		}
		if spare >= 0 {
			candidates = append(candidates, candidate{s, spare})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.spare, b.spare) })
	before := p.copyBins()
	for _, c := range candidates[:min(len(candidates), triedDomains)] {
		if fill(c.nodes) {
			return true
		}
		p.bins = before
		before = p.copyBins()
	}
	return false
}

func (p *packing) fillAll(kinds []int, nodes []*node) bool {
	for _, k := range p.hardestFirst() {
		if slices.Contains(kinds, k) && !p.fillLevels(k, p.kinds[k].count, nodes, p.levelsOf(k)) {
			return false
		}
	}
	return true
}
