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

// mostParts bounds the parts of gangs among which the exact search chooses.
const mostParts = 512

// withParts returns the set for the exact search: for each of its gangs that can give something
// up, beside what the set has of it, each number of pods that it can give up. Of very many
// pods it has only a few of these numbers, so the search is not exact.
func (p *preemption) withParts(a *candidateSet) *candidateSet {
	surplus, count := make([]*Started, len(a.candidates)), 0
	for i, c := range a.candidates {
		switch {
		case c.whole != nil:
			surplus[i] = c.Started
		case !c.evictedBefore:
			surplus[i] = p.d.state.surplus(c.Started)
		}
		if surplus[i] != nil {
			count += surplus[i].Workload.Pods()
		}
	}
	if count == 0 {
		return a
	}
	few := count > mostParts
	p.cut = p.cut || few
	with := &candidateSet{borrow: a.borrow, fallback: a.fallback}
	for i, c := range a.candidates {
		last := 0
		if surplus[i] != nil {
			last = surplus[i].Workload.Pods()
		}
		if c.whole != nil { // it is the last one itself
			last--
		}
		for pods := 1; pods <= last; {
			less := c
			less.Started = surplus[i].whole.part(pods)
			less.regret = p.d.regretOf(less.Started)
			with.candidates = append(with.candidates, less)
			if few {
				pods *= 2
			} else {
				pods++
			}
		}
		with.candidates = append(with.candidates, c)
	}
	return with
}

// mostTrimmed bounds the work of spareWhole for one workload on one cluster, in evictions
// tried. Beyond it, gangs may give up more than is needed.
const mostTrimmed = 200_000

// spareWhole has chosen victims that can be shrunk instead of evicted, the dearest first, and
// then has each of those that are shrunk give up no more than is needed.
func (p *preemption) spareWhole(v *victims) {
	dearest := make([]int, len(v.list))
	for i := range dearest {
		dearest[i] = i
	}
	slices.SortStableFunc(dearest, func(i, j int) int { return v.list[j].regretOf().compare(v.list[i].regretOf()) })
	for _, i := range dearest {
		g := v.list[i].Started
		if v.list[i].evictedBefore { // an exchange is of whole gangs
			continue
		}
		if g.whole == nil {
			if part := p.d.state.surplus(g); part == nil || !p.tryPart(v, i, part) {
				continue
			}
		}
		whole, low, high := v.list[i].whole, 1, v.list[i].Workload.Pods()
		for low < high {
			if middle := (low + high) / 2; p.tryPart(v, i, whole.part(middle)) {
				high = middle
			} else {
				low = middle + 1
			}
		}
	}
}

// tryPart has victim i give up that part only, if that is enough.
func (p *preemption) tryPart(v *victims, i int, part *Started) bool {
	if p.trimmed >= mostTrimmed {
		p.cut = true
		return false
	}
	p.trimmed += len(v.list)
	p.d.spend(p.payer, stepsPerCandidate*len(v.list)+stepWhatIf+p.w.Workload.Pods())
	list := slices.Clone(v.list)
	list[i].Started, list[i].regret = part, p.d.regretOf(part)
	places := p.enough(list, v.borrow)
	if places == nil {
		return false
	}
	rank := v.price.shareRank
	v.list, v.places, v.price = list, places, priceOf(list, p.d.state.victimOrder)
	v.price.shareRank = rank
	return true
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
