package admission

import "slices"

// search returns the cheapest victims in any of the sets of candidates, nil for none.
//
// Of each set it evicts candidates in order, where quota permits it, until that is
// enough (found by doubling and halving, since more room never hurts). Then it puts
// back those that are not needed, and has gangs that can be shrunk give up a part. Then it
// looks by exact search, also among these parts, for fewer or cheaper victims, unless it found
// none and evicting all candidates is not enough.
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
	if p.short { // it may need none
		p.hopeless = false
		return nil
	}
	var best *victims
	steps := victimSteps
	for i, a := range sets {
		if a.fallback && best != nil && !best.fallback {
			sets = sets[:i]
			break
		}
		if !p.anyPermitted(a.candidates) {
			p.hopeless = false // quota may permit it later
			continue
		}
		found := p.enoughVictims(&a)
		if p.d.state.victimOrder == AsKueue && found != nil {
			p.hopeless, best = false, found
			break
		}
		if best = p.weigh(best, found); found != nil || !p.insufficient(&a) && p.enoughTogether(a.candidates) {
			p.hopeless = false
			best = p.weigh(best, p.cheapest(p.withParts(&a), best, &steps))
		}
	}
	if p.d.state.victimOrder == LeastRegret {
		best = p.spareReturning(sets, best)
	}
	if p.d.state.victimOrder != AsKueue {
		p.weighOther(sets, best)
		if cheaper(best, p.other) != best { // as may be when the search was cut
			best, p.other = p.other, best
		}
	}
	if best != nil && p.cut { // else nothing can be spared
		p.spareWhole(best)
	}
	p.d.spend(p.payer, victimSteps-steps)
	return best
}

// weighOther looks for victims that spare the one of the chosen with the most regret,
// where no other set has been found. It takes the first that are enough.
func (p *preemption) weighOther(sets []candidateSet, chosen *victims) {
	if p.other != nil || chosen == nil || len(chosen.list) == 0 || p.d.refill(p.payer).steps <= 0 || p.d.state.allowance.steps <= 0 {
		return
	}
	dearest := slices.MaxFunc(chosen.list, func(a, b candidate) int { return a.regret.compare(b.regret) })
	cut := p.cut
	for _, a := range sets {
		rest := slices.DeleteFunc(slices.Clone(a.candidates), func(c candidate) bool { return c.Workload.ID == dearest.Workload.ID })
		p.other = cheaper(p.other, p.enoughOf(rest, &a))
	}
	p.cut = cut
}
