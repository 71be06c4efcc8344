package admission

import (
	"math"
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
	needs      []need
	floors     []price // of each candidate and number left: see floorOf
	size       int
	best       *victims
	steps      *int

	chosen []candidate
	gained []int64 // of each need
}

// cheapest looks for victims that cost less than the best known: sets of one gang, then
// of two, and so on, while there are steps left.
func (p *preemption) cheapest(a *candidateSet, best *victims, steps *int) *victims {
	most := min(len(a.candidates), mostVictims)
	if best != nil {
		most = min(most, len(best.list))
		if lowest(a.candidates, 1).compare(best.price) >= 0 {
			return best // without computing what each of them brings
		}
	}
	if a.needs == nil {
		a.needs = p.needsOf(a.candidates)
	}
	for size := floor(a.needs); size <= most && *steps > 0; size++ {
		if best != nil && lowest(a.candidates, size).compare(best.price) >= 0 {
			return best
		}
		s := &victimSearch{p: p, candidates: *a, needs: a.needs, size: size, best: best, steps: steps, gained: make([]int64, len(a.needs))}
		s.setFloors()
		s.extend(0)
		if s.best != nil && len(s.best.list) == size {
			p.cut = p.cut || *steps <= 0
			return s.best
		}
	}
	if *steps <= 0 || best == nil && len(a.candidates) > mostVictims || best != nil && len(best.list) > mostVictims {
		p.cut = true
	}
	return best
}

// lowest returns a lower bound of the price of any set of that size.
func lowest(list []candidate, size int) price {
	floor := floors{size: size, shareRank: math.MaxInt}
	for _, c := range list {
		floor.add(c)
	}
	return floor.of(size)
}

// setFloors computes, for each candidate i and each number n up to the size, a lower
// bound of the price of any n candidates from i on.
func (s *victimSearch) setFloors() {
	list := s.candidates.candidates
	s.floors = make([]price, (len(list)+1)*(s.size+1))
	floor := floors{size: s.size, shareRank: math.MaxInt}
	for i := len(list); i >= 0; i-- {
		if i < len(list) {
			floor.add(list[i])
		}
		for n := range min(s.size, len(floor.lost)) + 1 {
			s.floors[i*(s.size+1)+n] = floor.of(n)
		}
	}
}

// floors has the smallest parts of prices among some candidates, part by part.
type floors struct {
	size      int
	shareRank int
	own       []int
	highest   []int32
	lost      []int64
}

func (f *floors) add(c candidate) {
	one := priceOf([]candidate{c})
	f.shareRank = min(f.shareRank, one.shareRank)
	f.own = smallest(f.own, one.own, f.size)
	f.highest = smallest(f.highest, c.Workload.Priority, f.size)
	f.lost = smallest(f.lost, c.lost, f.size)
}

// of returns a lower bound of the price of any n of the candidates.
func (f *floors) of(n int) price {
	if n == 0 {
		return priceOf(nil)
	}
	p := price{gangs: n, shareRank: f.shareRank, highest: f.highest[n-1]}
	for i := range n {
		p.own, p.lost = p.own+f.own[i], p.lost+f.lost[i]
	}
	return p
}

// smallest inserts a value into the sorted smallest ones, and keeps that many.
func smallest[T int | int32 | int64](of []T, value T, many int) []T {
	at, _ := slices.BinarySearch(of, value)
	if at == many {
		return of
	}
	of = slices.Insert(of, at, value)
	return of[:min(len(of), many)]
}

// floorOf returns a lower bound of the price of the chosen and any n candidates from i
// on.
func (s *victimSearch) floorOf(i, n int) price {
	return priceOf(s.chosen).sum(s.floors[i*(s.size+1)+n])
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
	for i := from; i+left <= len(list) && *s.steps > 0; i++ {
		*s.steps -= stepLook
		if !s.mayImprove(i, left) {
			return
		}
		next := list[i]
		if !s.mayCover(i, left) || !s.mayBeCheaper(i, left) || next.evictedBefore && s.size > 1 || slices.ContainsFunc(refused, next.sameForQuota) {
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

// choose evicts candidate i and extends the set.
func (s *victimSearch) choose(i int) {
	next := s.candidates.candidates[i]
	undo := s.p.d.state.savepoint()
	s.p.remove(next.Started)
	s.chosen = append(s.chosen, next)
	for n := range s.needs {
		s.gained[n] += s.needs[n].brings[i]
	}
	s.extend(i + 1)
	for n := range s.needs {
		s.gained[n] -= s.needs[n].brings[i]
	}
	s.chosen = s.chosen[:len(s.chosen)-1]
	undo()
}

// mayImprove reports whether that many candidates from i on may bring what is missing
// and cost less than the best; if not, later ones do not either.
func (s *victimSearch) mayImprove(i, left int) bool {
	for n, need := range s.needs {
		if s.gained[n]+int64(left)*need.most[i] < need.missing {
			return false
		}
	}
	return s.best == nil || s.floorOf(i, left).compare(s.best.price) < 0
}

// mayCover reports whether candidate i and later ones may bring what is missing.
func (s *victimSearch) mayCover(i, left int) bool {
	for n, need := range s.needs {
		if s.gained[n]+need.brings[i]+int64(left-1)*need.most[i+1] < need.missing {
			return false
		}
	}
	return true
}

// mayBeCheaper reports whether candidate i and later ones may cost less than the best.
func (s *victimSearch) mayBeCheaper(i, left int) bool {
	if s.best == nil {
		return true
	}
	with, rest := priceOf(s.chosen).plus(s.candidates.candidates[i]), s.floors[(i+1)*(s.size+1)+left-1]
	return with.sum(rest).compare(s.best.price) < 0
}

// evaluate tries the chosen victims.
func (s *victimSearch) evaluate() {
	*s.steps -= stepWhatIf + s.p.w.Workload.Pods()
	if places := s.p.fits(s.candidates.borrow); places != nil {
		s.best = s.p.weigh(s.best, s.p.victimsOf(slices.Clone(s.chosen), places, &s.candidates))
	}
}
