package admission

import (
	"math"
	"math/bits"
	"slices"
)

// victimSteps bounds the exact search for the fewest victims of one workload, on
// one cluster, in the steps below.
const victimSteps = 20_000

// mostVictims is the largest number of victims in the exact search.
const mostVictims = 32

// Costs in steps.
const (
	stepLook   = 1  // at a candidate
	stepJudge  = 4  // whether quota lets it be evicted
	stepWhatIf = 20 // a what-if, and one more for each pod
)

// victimSearch is the exact search for the cheapest victims of a given number among
// the candidates of an attempt, in depth first order with bounds.
type victimSearch struct {
	p          *preemption
	candidates candidateSet
	floors     *floors
	fewest     int // victims, by what each of them can bring at most
	rank       int // the smallest share rank of a candidate
	size       int
	best       *victims
	steps      *int

	chosen []candidate
	price  price   // of the chosen
	gained []int64 // of each need
}

// cheapest looks for victims that cost less than the best known: sets of one gang, then
// of two, and so on, while larger ones may cost less and there are steps left.
func (p *preemption) cheapest(a *candidateSet, best *victims, steps *int) *victims {
	if best != nil && !mayUndercut(a.candidates, best) {
		return best // without computing what each of them brings
	}
	if a.needs == nil {
		a.needs = p.needsOf(a.candidates)
	}
	s := &victimSearch{
		p: p, candidates: *a, fewest: floor(a.needs), rank: smallestRank(a.candidates), best: best, steps: steps,
		price: priceOf(nil, p.d.state.victimOrder), gained: make([]int64, len(a.needs)),
	}
	if s.proven() { // without computing bounds for each of them
		return best
	}
	s.floors, s.size = newFloors(a.candidates, mostVictims+1), s.fewest
	for ; s.size <= s.floors.gangs[0] && s.floors.below(s.best, s.price, 0, s.size); s.size++ {
		if s.size > mostVictims || *steps <= 0 { // larger sets may cost less
			p.cut = p.cut || !s.proven()
			break
		}
		s.extend(0)
	}
	p.cut = p.cut || *steps <= 0 && !s.proven()
	return s.best
}

// proven reports whether counting shows that no set costs less than the best: no candidate is
// of a lower level or loses less for each unit of something that is missing.
func (s *victimSearch) proven() bool {
	if s.best == nil || len(s.best.list) == 0 || s.best.price.gangs > s.fewest || len(s.best.price.regrets) != 1 || s.best.price.shareRank > s.rank {
		return false
	}
	lost := s.best.price.regrets[0]
	return slices.ContainsFunc(s.candidates.needs, func(n need) bool {
		for i, c := range s.candidates.candidates {
			r := c.regretOf()
			if r.level.compare(lost.level) < 0 || timesBelow(r.accelerators, n.missing, lost.accelerators, n.brings[i]) || timesBelow(r.pods, n.missing, lost.pods, n.brings[i]) {
				return false
			}
		}
		return true
	})
}

// smallestRank returns the smallest share rank of a candidate.
func smallestRank(list []candidate) int {
	rank := math.MaxInt
	for i := range list {
		rank = min(rank, list[i].shareRank)
	}
	return rank
}

// timesBelow reports whether a times b is less than c times d, none of which is negative.
func timesBelow(a, b, c, d int64) bool {
	high, low := bits.Mul64(uint64(a), uint64(b))
	highest, lowest := bits.Mul64(uint64(c), uint64(d))
	return high < highest || high == highest && low < lowest
}

// mayUndercut reports whether a candidate alone may cost less than the best.
func mayUndercut(list []candidate, best *victims) bool {
	return slices.ContainsFunc(list, func(c candidate) bool {
		return best.price.countFirst && best.price.gangs > 1 || c.shareRank < best.price.shareRank ||
			c.shareRank == best.price.shareRank && compareRegrets([]levelRegret{c.regretOf()}, best.price.regrets) < 0
	})
}

// extend chooses the next victim from a candidate on, in all ways that may be cheaper
// than the best.
func (s *victimSearch) extend(from int) {
	left := s.size - len(s.chosen)
	if left == 0 {
		s.evaluate()
		return
	}
	list := s.candidates.candidates
	var refused []candidate // by quota, after those chosen
	for i := from; s.floors.gangs[i] >= left && *s.steps > 0; i++ {
		*s.steps -= stepLook
		if !s.mayImprove(i, left) {
			return
		}
		next := list[i]
		if !s.mayCover(i, left) || !s.mayBeCheaper(i, left) || next.evictedBefore && s.size > 1 || s.has(next) || slices.ContainsFunc(refused, next.sameForQuota) {
			continue
		}
		*s.steps -= stepJudge
		if next.evictedBefore && !s.p.isExchange(next) || !s.p.permitted(next) {
			refused = append(refused, next)
			continue
		}
		s.choose(i)
	}
}

// has reports whether the gang, or a part of it, is chosen.
func (s *victimSearch) has(c candidate) bool {
	return slices.ContainsFunc(s.chosen, func(other candidate) bool { return other.Workload.ID == c.Workload.ID })
}

// choose evicts candidate i and extends the set.
func (s *victimSearch) choose(i int) {
	next, before := s.candidates.candidates[i], s.price
	undo := s.p.d.state.savepoint()
	s.p.remove(next.Started)
	s.chosen = append(s.chosen, next)
	s.price = before.plus(next)
	for n, need := range s.candidates.needs {
		s.gained[n] += need.brings[i]
	}
	s.extend(i + 1)
	for n, need := range s.candidates.needs {
		s.gained[n] -= need.brings[i]
	}
	s.chosen, s.price = s.chosen[:len(s.chosen)-1], before
	undo()
}

// mayImprove reports whether that many candidates from i on may bring what is missing
// and cost less than the best; if not, later ones do not either.
func (s *victimSearch) mayImprove(i, left int) bool {
	for n, need := range s.candidates.needs {
		if s.gained[n]+int64(left)*need.most[i] < need.missing {
			return false
		}
	}
	return s.floors.below(s.best, s.price, i, left)
}

// mayCover reports whether candidate i and later ones may bring what is missing.
func (s *victimSearch) mayCover(i, left int) bool {
	for n, need := range s.candidates.needs {
		if s.gained[n]+need.brings[i]+int64(left-1)*need.most[i+1] < need.missing {
			return false
		}
	}
	return true
}

// mayBeCheaper reports whether candidate i and later ones may cost less than the best.
func (s *victimSearch) mayBeCheaper(i, left int) bool {
	return s.best == nil || s.floors.below(s.best, s.price.plus(s.candidates.candidates[i]), i+1, left-1)
}

// evaluate tries the chosen victims. Under fair sharing a superfluous victim can lower the
// rank of the others, so each that can be spared is.
func (s *victimSearch) evaluate() {
	*s.steps -= stepWhatIf + s.p.w.Workload.Pods()
	places := s.p.fits(s.candidates.borrow)
	if places == nil {
		return
	}
	undo := s.p.d.state.savepoint()
	for _, c := range s.chosen { // shares are those before the first eviction
		s.p.putBack(c.Started)
	}
	found := s.p.victimsOf(slices.Clone(s.chosen), places, &s.candidates)
	if s.p.d.state.fair() && len(s.chosen) > 1 && cheaper(s.best, found) == found {
		*s.steps -= len(s.chosen) * (stepWhatIf + s.p.w.Workload.Pods())
		found = s.p.spareUnneeded(s.chosen, &s.candidates)
	}
	undo()
	s.best = s.p.weigh(s.best, found)
}
