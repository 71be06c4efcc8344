package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// search returns the cheapest victims in any of the sets of candidates, nil for none.
//
// Of each set it evicts candidates in order, where quota permits it, until that is
// enough (found by doubling and halving, since more room never hurts). Then it puts
// back those that are not needed. Then it looks by exact search for fewer or cheaper
// victims, unless it found none and evicting all candidates is not enough.
func (p *preemption) search(sets []candidateSet) *victims {
	undo := p.d.state.savepoint()
	defer undo()
	p.d.allocateReserved(p.w, p.cluster) // an eviction must not delay a head
	for _, g := range p.terminating {
		p.remove(g)
	}
	p.overQuota = p.lackingCharges()
	if places := p.fits(true); places != nil {
		return &victims{places: places}
	}
	var best *victims
	steps := victimSteps
	for i, a := range sets {
		if a.fallback && best != nil {
			sets = sets[:i]
			break
		}
		if !p.anyPermitted(a.candidates) {
			p.hopeless = false // quota may permit it later
			continue
		}
		found := p.enoughVictims(&a)
		if best = p.weigh(best, found); found != nil || !p.insufficient(&a) && p.enoughTogether(a.candidates) {
			p.hopeless = false
			best = p.weigh(best, p.cheapest(&a, best, &steps))
		}
	}
	p.weighOther(sets, best)
	p.d.spend(p.w.queue, victimSteps-steps)
	return best
}

// lackingCharges returns the charges for which quota is lacking. As in Kueue, only what a
// queue uses of these beyond its own quota can be reclaimed. Where quota is not lacking,
// only places are: then all charges count.
func (p *preemption) lackingCharges() []quota.Charge {
	if lacking := p.w.queue.quota.Lacking(p.charges); len(lacking) > 0 {
		return lacking
	}
	return p.charges
}

func (p *preemption) remove(g *Started) {
	p.d.state.fleets[g.Cluster].Release(g.Workload, g.Placements)
	g.queue.quota.Release(g.charges)
}

// fits returns the places of the workload if it is within quota and has any.
func (p *preemption) fits(borrow bool) []workload.Placement {
	if q := p.w.queue.quota; !q.Fits(p.charges) || !borrow && q.Borrows(p.charges) {
		return nil
	}
	verdict, _ := p.d.solve(p.w.queue, p.d.state.fleets[p.cluster], p.flavored.w)
	if verdict.Outcome == placement.Unknown {
		p.cut = true
	}
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return verdict.Placements
}

// permitted reports whether quota, as it is after the evictions so far, lets the
// candidate be evicted.
func (p *preemption) permitted(c candidate) bool {
	q := p.w.queue.quota
	switch c.policy {
	case withinQueue:
		return true
	case fairShare:
		return q.MayReclaimFrom(c.queue.quota, p.overQuota) && p.fairShareAllows(c)
	}
	return q.MayReclaimFrom(c.queue.quota, p.overQuota)
}

func (p *preemption) fairShareAllows(c candidate) bool {
	return slices.ContainsFunc(p.d.strategies()[:c.strategies], func(strategy string) bool {
		return p.w.queue.quota.FairToEvict(p.charges, c.queue.quota, c.charges, strategy)
	})
}

// isExchange reports whether the candidate may be evicted although one of the two has
// been evicted for the other before. The two have the same charges, so nothing is left
// over for others. The exchange must make the shares more even or, within a queue, the
// order better. The package comment says why that ends.
func (p *preemption) isExchange(c candidate) bool {
	return c.policy == withinQueue || p.w.queue.quota.Evens(p.charges, c.queue.quota)
}

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

// evictPermitted returns the first candidates, at most that many, that quota permits to
// evict one after the other.
func (p *preemption) evictPermitted(candidates []candidate, most int) []candidate {
	tree := p.d.state.tree // what is permitted depends on quota alone
	before := tree.Begin()
	defer tree.Rollback(before)
	var chosen, refused []candidate
	for _, c := range candidates {
		if len(chosen) == most {
			break
		}
		if c.evictedBefore || slices.ContainsFunc(refused, c.sameForQuota) {
			continue
		}
		if !p.permitted(c) {
			refused = append(refused, c)
			continue
		}
		c.queue.quota.Release(c.charges)
		chosen, refused = append(chosen, c), nil
	}
	return chosen
}

// anyPermitted reports whether quota permits to evict one of the candidates first.
func (p *preemption) anyPermitted(candidates []candidate) bool {
	var refused []candidate
	return slices.ContainsFunc(candidates, func(c candidate) bool {
		if slices.ContainsFunc(refused, c.sameForQuota) {
			return false
		}
		if p.permitted(c) && (!c.evictedBefore || p.isExchange(c)) {
			return true
		}
		refused = append(refused, c)
		return false
	})
}

// mostSpared bounds the work of spareUnneeded, in evictions tried. That is enough for
// about four hundred victims; among more, some may be evicted without need.
const mostSpared = 200_000

// spareUnneeded puts victims back that the workload does not need, until it needs all.
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
			p.d.spend(p.w.queue, stepsPerCandidate*len(needed))
			if fit := without(i); fit != nil {
				needed, places, spared = slices.Delete(needed, i, i+1), fit, true
			}
		}
	}
	p.cut = p.cut || tried >= mostSpared
	return p.victimsOf(needed, places, a)
}
