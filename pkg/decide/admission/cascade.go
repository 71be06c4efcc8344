package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// mostReturning bounds the victims of which it is asked whom they would evict in turn.
const mostReturning = 4

// spareReturning has a victim run on where the workload can do without its eviction, by
// evictions that the victim would cause in turn when it comes back. So an eviction has no
// cascade that is larger than a set that is enough at once. It changes whom the workload
// evicts, and never whether it may.
func (p *preemption) spareReturning(sets []candidateSet, v *victims) *victims {
	asked := map[workload.ID]bool{}
	for v != nil && len(asked) < mostReturning && p.d.refill(p.payer).steps > 0 && p.d.state.allowance.steps > 0 {
		returns := v.nextReturning(asked)
		if returns == nil {
			break
		}
		asked[returns.Workload.ID] = true
		if direct := p.without(*returns, v, sets); direct != nil {
			cascade := *v
			cascade.cascades = true
			p.other, v = &cascade, direct
		}
	}
	return v
}

// nextReturning returns the victim that is asked next, nil for none: whole gangs that may evict
// others, those of the highest priority first.
func (v *victims) nextReturning(asked map[workload.ID]bool) *candidate {
	var next *candidate
	for i := range v.list {
		c := &v.list[i]
		if c.whole != nil || c.queue.quota.Preemption == nil || asked[c.Workload.ID] {
			continue
		}
		if next == nil || cmp.Or(cmp.Compare(next.Workload.Priority, c.Workload.Priority), next.regret.compare(c.regret), cmp.Compare(c.Workload.ID, next.Workload.ID)) < 0 {
			next = c
		}
	}
	return next
}

// without returns victims that leave one of the chosen out, when it would evict others of a
// lower priority to come back, and the new ones are no more than all of these together; nil for
// none.
func (p *preemption) without(returns candidate, v *victims, sets []candidateSet) *victims {
	i := slices.IndexFunc(sets, func(a candidateSet) bool { return a.borrow == v.borrow && a.fallback == v.fallback })
	if i < 0 {
		return nil
	}
	chosen := gangsIn(v.list)
	var lower []candidate
	for _, c := range sets[i].candidates {
		if c.whole == nil && !c.evictedBefore && c.Workload.Priority < returns.Workload.Priority && !chosen[c.Workload.ID] {
			lower = append(lower, c)
		}
	}
	p.d.spend(p.payer, stepsPerCandidate*len(sets[i].candidates))
	if len(lower) == 0 {
		return nil
	}
	caused := gangsIn(p.evictedBy(returns, v, lower))
	if len(caused) == 0 {
		return nil
	}
	list := slices.DeleteFunc(slices.Clone(v.list), func(c candidate) bool { return c.Workload.ID == returns.Workload.ID })
	for _, first := range []bool{true, false} {
		for _, c := range lower {
			if caused[c.Workload.ID] == first {
				list = append(list, c)
			}
		}
	}
	direct := p.enoughOf(list, &sets[i])
	if direct == nil || len(direct.list) > len(v.list)+len(caused) {
		return nil
	}
	return direct
}

func gangsIn(list []candidate) map[workload.ID]bool {
	ids := make(map[workload.ID]bool, len(list))
	for _, c := range list {
		ids[c.Workload.ID] = true
	}
	return ids
}

// evictedBy returns the gangs among those of a lower priority that a victim would evict to come
// back where it was, with the workload started; none where it has room, or may evict none, or a
// bound ended the search.
func (p *preemption) evictedBy(returns candidate, v *victims, lower []candidate) []candidate {
	undo := p.d.state.savepoint()
	defer undo()
	for _, c := range v.list {
		p.remove(c.Started)
	}
	p.d.state.fleets[p.cluster].Allocate(p.w.Workload, v.places)
	p.w.queue.quota.Allocate(p.charges)

	g := returns.Started
	w := &Waiting{Workload: g.Workload, Order: g.Order, RunTime: g.RunTime, queue: g.queue}
	w.signature = &podSetSignature{podSets: g.Workload.PodSets, home: g.Workload.Home(), needs: g.Workload.Needs()}
	w.beyond = p.d.state.beyond(w)
	back := &preemption{d: p.d, w: w, cluster: g.Cluster, payer: p.payer}
	room := back.hasRoom()
	if room || back.cut {
		p.cut = p.cut || !room
		return nil
	}
	back.charged(g.charges, g.Flavors)
	back.overQuota = back.lackingCharges()
	var best *victims
	for _, a := range back.setsAmong(lower) {
		if best != nil && a.fallback && !best.fallback {
			break
		}
		best = cheaper(best, back.enoughVictims(&a))
	}
	if back.cut {
		p.cut = true
		return nil
	}
	if best == nil {
		return nil
	}
	return best.list
}

// charged has the search be for the charges of an assignment of flavors.
func (p *preemption) charged(charges []quota.Charge, flavors []workload.PodSetFlavors) {
	effective := &workload.Workload{PodSets: p.d.state.tree.Effective(p.w.Workload.PodSets, flavors)}
	p.charges, p.flavored = charges, &flavoredSignature{w: effective, transient: true}
}

// hasRoom reports whether the workload starts without any eviction, in any cluster and by any
// flavors.
func (p *preemption) hasRoom() bool {
	all, _, _ := p.w.queue.quota.Assignments(p.w.Workload.PodSets)
	trial := *p
	for i := range all {
		trial.charged(all[i].Charges, all[i].Flavors)
		for _, trial.cluster = range p.d.state.offering(p.d.state.clustersFor(p.w), all[i].Flavors) {
			if trial.fits(true) != nil {
				return true
			}
		}
	}
	p.cut = trial.cut
	return false
}

// setsAmong returns the sets of candidates that policies permit, of those given.
func (p *preemption) setsAmong(list []candidate) []candidateSet {
	ranks := p.d.sharesWith(p.w, p.charges)
	var own, others []candidate
	for _, c := range list {
		c.policy, c.strategies, c.shareRank = reclaimed, 0, ranks[c.queue]
		if c.queue == p.w.queue {
			c.policy = withinQueue
		}
		switch {
		case !p.w.queue.quota.SameTree(c.queue.quota) || !p.w.mayEvict(c.Started, c.policy):
		case c.policy == withinQueue:
			own = append(own, c)
		default:
			others = append(others, c)
		}
	}
	slices.SortFunc(own, byEviction)
	slices.SortFunc(others, byEviction)
	if len(own)+len(others) == 0 {
		return nil
	}
	return p.d.permittedSets(p.w, quota.Assess{Assignment: &quota.Assignment{Charges: p.charges}}, others, own)
}
