package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// lackingCharges returns the charges for which quota is lacking. As in Kueue, only what a
// queue uses of these beyond its own quota can be reclaimed. Where quota is not lacking,
// only places are: then all charges count.
func (p *preemption) lackingCharges() []quota.Charge {
	if lacking := p.w.queue.quota.Lacking(p.charges); len(lacking) > 0 {
		return lacking
	}
	return p.charges
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
// order better. The package comment explains why that ends.
func (p *preemption) isExchange(c candidate) bool {
	return c.policy == withinQueue || p.w.queue.quota.Evens(p.charges, c.queue.quota)
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

// sameForQuota reports whether quota treats the two alike.
func (c candidate) sameForQuota(other candidate) bool {
	return c.queue == other.queue && c.policy == other.policy && c.evictedBefore == other.evictedBefore && slices.Equal(c.charges, other.charges)
}

func (p *preemption) remove(g *Started) {
	p.d.state.fleets[g.Cluster].Release(g.Workload, g.Placements)
	g.queue.quota.Release(g.charges)
}

// putBack undoes remove.
func (p *preemption) putBack(g *Started) {
	p.d.state.fleets[g.Cluster].Allocate(g.Workload, g.Placements)
	g.queue.quota.Allocate(g.charges)
}

// fits returns the places of the workload if it is within quota and has any.
func (p *preemption) fits(borrow bool) []workload.Placement {
	p.unknown = false
	if q := p.w.queue.quota; !q.Fits(p.charges) || !borrow && q.Borrows(p.charges) {
		return nil
	}
	verdict, short := p.d.solveSparing(p.payer, p.w, p.cluster, p.flavored.w)
	p.unknown, p.short = verdict.Outcome == placement.Unknown, p.short || short
	p.cut = p.cut || p.unknown
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return verdict.Placements
}
