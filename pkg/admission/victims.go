package admission

import (
	"slices"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// search returns the cheapest victims that any of the attempts finds, nil for
// none.
//
// Of each attempt's candidates, in order, those are evicted that quota lets be, as
// many as it takes (found by doubling and halving, since more room never hurts);
// then those are spared without whom it works as well, so that no victim can be
// left out. Then fewer, or as many that cost less, are sought exactly, unless
// nothing was found and evicting all candidates at once is not enough.
func (p *preemption) search(attempts []attempt) *victims {
	undo := p.begin()
	defer undo()
	p.d.keep(p.w, p.cluster) // an eviction must not help past a head
	for _, g := range p.going {
		p.remove(g)
	}
	if places := p.fits(nil, true); places != nil {
		return &victims{places: places}
	}
	var best *victims
	steps := victimSteps
	for _, a := range attempts {
		if !p.any(a.candidates) {
			p.hopeless = false // quota may permit it later
			continue
		}
		found := p.several(&a)
		if best = cheaper(best, found); found != nil || !p.vain(&a) && p.helps(a.candidates) {
			p.hopeless = false
			best = p.fewest(&a, best, &steps)
		}
	}
	p.d.spend(p.w.queue, victimSteps-steps)
	return best
}

// begin starts a what-if on all fleets and on quota.
func (p *preemption) begin() (undo func()) {
	s := p.d.state
	quotas := s.tree.Begin()
	fleets := make([]placement.Mark, len(s.clusters))
	for i, cluster := range s.clusters {
		fleets[i] = s.fleets[cluster].Begin()
	}
	return func() {
		s.tree.Rollback(quotas)
		for i, cluster := range s.clusters {
			s.fleets[cluster].Rollback(fleets[i])
		}
	}
}

func (p *preemption) remove(g *Started) {
	p.d.state.fleets[g.Cluster].Give(g.Workload, g.Placements)
	g.queue.quota.Free(g.charges)
}

// fits returns places when the workload, with so many evicted, is within quota
// and has them. evicted are those who have been removed.
func (p *preemption) fits(evicted []candidate, borrow bool) []workload.Placement {
	q := p.w.queue.quota
	if !q.Fits(p.charges) || !borrow && slices.ContainsFunc(evicted, func(c candidate) bool {
		return c.queue != p.w.queue && q.BorrowsFrom(c.queue.quota, p.charges)
	}) {
		return nil
	}
	verdict, _ := p.d.solve(p.w.queue, p.d.state.fleets[p.cluster], p.variant.w)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return verdict.Placements
}

// permitted reports whether the state of quotas, with those before it evicted,
// lets the candidate be evicted.
func (p *preemption) permitted(c candidate) bool {
	q := p.w.queue.quota
	switch c.policy {
	case withinQueue:
		return true
	case fairShare:
		return q.MayReclaimFrom(c.queue.quota, p.charges) && p.fair(c)
	}
	return q.MayReclaimFrom(c.queue.quota, p.charges)
}

func (p *preemption) fair(c candidate) bool {
	strategies := p.d.state.tree.Config().FairSharing.PreemptionStrategies
	if len(strategies) == 0 {
		strategies = []string{quota.LessThanOrEqualToFinalShare, quota.LessThanInitialShare}
	}
	return slices.ContainsFunc(strategies, func(strategy string) bool {
		return p.w.queue.quota.FairToEvict(p.charges, c.queue.quota, c.charges, strategy)
	})
}

// exchange reports whether the candidate may be evicted although one of the two
// has been evicted for the other before. The two are charged the same, so that
// nothing is left over for others: it must have the shares become more even, or,
// within the queue, gangs run in its order. The package comment says why that
// ends.
func (p *preemption) exchange(c candidate) bool {
	return c.policy == withinQueue || p.w.queue.quota.Evens(p.charges, c.queue.quota)
}

// fewVictims are evicted to see whether that is enough before it is asked whether
// any number can be.
const fewVictims = 8

// several evicts as many as it takes.
func (p *preemption) several(a *attempt) *victims {
	var chosen []candidate
	enough := func(n int) []workload.Placement {
		undo := p.begin()
		defer undo()
		for _, c := range chosen[:n] {
			p.remove(c.Started)
		}
		return p.fits(chosen[:n], a.borrow)
	}
	low, high := 1, 1
	for {
		chosen = p.permittedOf(a.candidates, high)
		if len(chosen) < low { // the last look was at all of them
			return nil
		}
		if high = len(chosen); enough(high) != nil {
			break
		}
		if low, high = high+1, 2*high; high > fewVictims && p.vain(a) {
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
	return p.spare(chosen[:low], a.borrow)
}

// permittedOf evicts one after the other who may be evicted then, and returns
// them, or the first ones of them.
func (p *preemption) permittedOf(candidates []candidate, most int) []candidate {
	tree := p.d.state.tree // what is permitted depends on quota alone
	mark := tree.Begin()
	defer tree.Rollback(mark)
	var chosen, refused []candidate
	for _, c := range candidates {
		if len(chosen) == most {
			break
		}
		if c.again || slices.ContainsFunc(refused, c.likeToQuota) {
			continue
		}
		if !p.permitted(c) {
			refused = append(refused, c)
			continue
		}
		c.queue.quota.Free(c.charges)
		chosen, refused = append(chosen, c), nil
	}
	return chosen
}

// any reports whether one of the candidates may be evicted first.
func (p *preemption) any(candidates []candidate) bool {
	var refused []candidate
	return slices.ContainsFunc(candidates, func(c candidate) bool {
		if slices.ContainsFunc(refused, c.likeToQuota) {
			return false
		}
		if p.permitted(c) && (!c.again || p.exchange(c)) {
			return true
		}
		refused = append(refused, c)
		return false
	})
}

// mostSpared bounds, in evictions that are tried, how long spare goes on. Some four
// hundred victims are looked at whole; of more, those that are left over may be
// evicted without need.
const mostSpared = 200_000

// spare puts back those without whom the workload fits as well, until there are
// none.
func (p *preemption) spare(chosen []candidate, borrow bool) *victims {
	needed := slices.Clone(chosen)
	var places []workload.Placement
	without := func(i int) []workload.Placement { // i < 0: nobody is put back
		undo := p.begin()
		defer undo()
		var evicted []candidate
		for j, c := range needed {
			if j == i {
				continue
			}
			if !p.permitted(c) {
				return nil
			}
			p.remove(c.Started)
			evicted = append(evicted, c)
		}
		return p.fits(evicted, borrow)
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
	return &victims{needed, places}
}
