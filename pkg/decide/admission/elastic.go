package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// partsOf returns the candidates of the sets with what they can give up in their place; those
// that can give up nothing are left out.
func (d *decision) partsOf(sets []candidateSet) []candidateSet {
	var parts []candidateSet
	for _, set := range sets {
		var list []candidate
		for _, c := range set.candidates {
			if part := d.state.surplus(c.Started); part != nil && !c.evictedBefore {
				c.Started, c.regret = part, d.regretOf(part)
				list = append(list, c)
			}
		}
		if set.candidates, set.needs = list, nil; len(list) > 0 {
			parts = append(parts, set)
		}
	}
	return parts
}

// spareWhole has chosen victims that can be shrunk instead of evicted, the dearest first, and
// then has each of those that are shrunk give up no more than is needed.
func (p *preemption) spareWhole(v *victims) {
	dearest := make([]int, len(v.list))
	for i := range dearest {
		dearest[i] = i
	}
	slices.SortStableFunc(dearest, func(i, j int) int { return v.list[j].regret.compare(v.list[i].regret) })
	try := func(i int, part *Started) bool {
		list := slices.Clone(v.list)
		list[i].Started, list[i].regret = part, p.d.regretOf(part)
		places := p.enough(list, v.borrow)
		if places != nil {
			v.list, v.places = list, places
		}
		return places != nil
	}
	for _, i := range dearest {
		g := v.list[i].Started
		if g.whole == nil {
			if part := p.d.state.surplus(g); part == nil || !try(i, part) {
				continue
			}
		}
		whole, low, high := v.list[i].whole, 1, v.list[i].Workload.Pods()
		for low < high {
			if middle := (low + high) / 2; try(i, whole.part(middle)) {
				high = middle
			} else {
				low = middle + 1
			}
		}
	}
}

// enough returns the places of the workload with these victims gone, nil when quota does not
// permit them one after the other, or they are not enough.
func (p *preemption) enough(list []candidate, borrow bool) []workload.Placement {
	undo := p.d.state.savepoint()
	defer undo()
	for _, c := range list {
		if !p.permitted(c) {
			return nil
		}
		p.remove(c.Started)
	}
	return p.fits(borrow)
}
