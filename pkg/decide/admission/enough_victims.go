package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// fewVictims is how many are tried before counting whether all could be enough.
const fewVictims = 8

// enoughVictims returns victims found by evicting candidates in order, nil for none.
func (p *preemption) enoughVictims(a *candidateSet) *victims {
	var chosen []candidate
	enough := func(n int) []workload.Placement {
		undo := p.d.state.savepoint()
		defer undo()
		for _, c := range chosen[:n] {
			p.remove(c.Started)
		}
		return p.fits(a.borrow)
	}
	low, high := 1, 1
	for {
		chosen = p.evictPermitted(a.candidates, high)
		if len(chosen) < low { // all of them have been tried
			return nil
		}
		if high = len(chosen); enough(high) != nil {
			break
		}
		if low, high = high+1, 2*high; high > fewVictims && p.insufficient(a) {
			return nil
		}
	}
	for low < high {
		if middle := (low + high) / 2; enough(middle) != nil {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return p.spareUnneeded(chosen[:low], a)
}

// enoughOf returns victims among some of the candidates of a set, nil for none. Their price is
// that among all of these: without the others a queue would seem to have a larger share.
func (p *preemption) enoughOf(some []candidate, a *candidateSet) *victims {
	v := p.enoughVictims(&candidateSet{candidates: some, borrow: a.borrow, fallback: a.fallback})
	if v != nil {
		v.price.shareRank = p.shareRank(v.list, a)
	}
	return v
}

// mostSpared bounds the work of spareUnneeded, in evictions tried. That is enough for
// about four hundred victims; among more, some may be evicted without need.
const mostSpared = 200_000

// spareUnneeded puts victims back that the workload does not need, until it needs all, and
// has gangs give up a part where that is enough.
func (p *preemption) spareUnneeded(chosen []candidate, a *candidateSet) *victims {
	needed := slices.Clone(chosen)
	var places []workload.Placement
	without := func(i int) []workload.Placement { // i < 0: none is put back
		undo := p.d.state.savepoint()
		defer undo()
		for j, c := range needed {
			if j == i {
				continue
			}
			if !p.permitted(c) {
				return nil
			}
			p.remove(c.Started)
		}
		return p.fits(a.borrow)
	}
	if places = without(-1); places == nil {
		return nil
	}
	tried := 0
	for spared := true; spared && tried < mostSpared; {
		spared = false
		for i := len(needed) - 1; i >= 0 && tried < mostSpared; i-- {
			tried += len(needed)
			p.d.spend(p.payer, stepsPerCandidate*len(needed))
			if fit := without(i); fit != nil {
				needed, places, spared = slices.Delete(needed, i, i+1), fit, true
			}
		}
	}
	p.cut = p.cut || tried >= mostSpared
	v := p.victimsOf(needed, places, a)
	p.spareWhole(v)
	return v
}
