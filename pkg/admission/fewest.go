package admission

import "slices"

// victimSteps bounds the exact search for the fewest victims of one workload, on
// one cluster; what a step is, steps tell.
const victimSteps = 20_000

// mostVictims is the largest number of victims that is sought exactly.
const mostVictims = 32

// Costs in steps.
const (
	stepLook  = 1  // at a candidate
	stepJudge = 4  // whether quota lets it be evicted
	stepWhat  = 20 // a what-if, and one more for each pod
)

// choice is the exact search for the cheapest victims of a given number among
// the candidates of an attempt, in depth first order with bounds.
type choice struct {
	p       *preemption
	attempt attempt
	needs   []need
	floors  []price // of each candidate and number left: see floorOf
	size    int
	best    *victims
	steps   *int

	chosen []candidate
	gained []int64 // of each need
}

// fewest looks for victims that cost less than the best known: one gang, then
// two, and so on, as long as there are steps left.
func (p *preemption) fewest(a *attempt, best *victims, steps *int) *victims {
	most := min(len(a.candidates), mostVictims)
	if best != nil {
		most = min(most, len(best.list))
		if lowest(a.candidates, 1).compare(priceOf(best.list)) >= 0 {
			return best // so without looking for what each of them brings
		}
	}
	if a.needs == nil {
		a.needs = p.needsOf(a.candidates)
	}
	for size := floor(a.needs); size <= most && *steps > 0; size++ {
		if best != nil && lowest(a.candidates, size).compare(priceOf(best.list)) >= 0 {
			return best
		}
		c := &choice{p: p, attempt: *a, needs: a.needs, size: size, best: best, steps: steps, gained: make([]int64, len(a.needs))}
		c.setFloors()
		c.extend(0)
		if c.best != nil && len(c.best.list) == size {
			return c.best
		}
	}
	return best
}

// lowest returns a price that no set of the size is below.
func lowest(list []candidate, size int) price {
	floor := floors{size: size}
	for _, c := range list {
		floor.add(c)
	}
	return floor.of(size)
}

// setFloors computes for each candidate i and each number n up to the size a
// price that any n of the candidates from i on cost at the least.
func (c *choice) setFloors() {
	list := c.attempt.candidates
	c.floors = make([]price, (len(list)+1)*(c.size+1))
	floor := floors{size: c.size}
	for i := len(list); i >= 0; i-- {
		if i < len(list) {
			floor.add(list[i])
		}
		for n := range min(c.size, len(floor.lost)) + 1 {
			c.floors[i*(c.size+1)+n] = floor.of(n)
		}
	}
}

// floors has the smallest parts of prices among some candidates, each part apart.
type floors struct {
	size     int
	offences []int
	highest  []int32
	lost     []int64
}

func (f *floors) add(c candidate) {
	f.offences = smallest(f.offences, c.offence, f.size)
	f.highest = smallest(f.highest, c.Workload.Priority, f.size)
	f.lost = smallest(f.lost, c.lost, f.size)
}

// of returns what any n of the candidates cost at the least.
func (f *floors) of(n int) price {
	if n == 0 {
		return priceOf(nil)
	}
	p := price{gangs: n, offence: f.offences[n-1], highest: f.highest[n-1]}
	for _, lost := range f.lost[:n] {
		p.lost += lost
	}
	return p
}

// smallest adds a value to the smallest ones, in order, and keeps so many.
func smallest[T int | int32 | int64](of []T, value T, many int) []T {
	at, _ := slices.BinarySearch(of, value)
	if at == many {
		return of
	}
	of = slices.Insert(of, at, value)
	return of[:min(len(of), many)]
}

// floorOf returns what the chosen and n of the candidates from i on cost at the
// least.
func (c *choice) floorOf(i, n int) price {
	return priceOf(c.chosen).and(c.floors[i*(c.size+1)+n])
}

// extend chooses the next victim from candidate i on, in all ways that may be
// better than the best.
func (c *choice) extend(from int) {
	left := c.size - len(c.chosen)
	if left == 0 {
		c.weigh()
		return
	}
	list := c.attempt.candidates
	var refused []candidate // by quota, after those chosen
	for i := from; i+left <= len(list) && *c.steps > 0; i++ {
		*c.steps -= stepLook
		if !c.worthwhile(i, left) {
			return
		}
		next := list[i]
		if !c.covers(i, left) || !c.cheapens(i, left) || next.again && c.size > 1 || slices.ContainsFunc(refused, next.likeToQuota) {
			continue
		}
		*c.steps -= stepJudge
		if next.again && !c.p.exchange(next) || !c.p.permitted(next) {
			refused = append(refused, next)
			continue
		}
		c.choose(i)
	}
}

// choose evicts candidate i and goes on.
func (c *choice) choose(i int) {
	next := c.attempt.candidates[i]
	undo := c.p.begin()
	c.p.remove(next.Started)
	c.chosen = append(c.chosen, next)
	for n := range c.needs {
		c.gained[n] += c.needs[n].brings[i]
	}
	c.extend(i + 1)
	for n := range c.needs {
		c.gained[n] -= c.needs[n].brings[i]
	}
	c.chosen = c.chosen[:len(c.chosen)-1]
	undo()
}

// likeToQuota reports whether quota makes no difference between the two.
func (c candidate) likeToQuota(other candidate) bool {
	return c.queue == other.queue && c.policy == other.policy && c.again == other.again && slices.Equal(c.charges, other.charges)
}

// worthwhile reports whether so many of the candidates from i on may bring what
// is missing and cost less than the best; if not, nor do those after them.
func (c *choice) worthwhile(i, left int) bool {
	for n, need := range c.needs {
		if c.gained[n]+int64(left)*need.most[i] < need.missing {
			return false
		}
	}
	return c.best == nil || c.floorOf(i, left).compare(priceOf(c.best.list)) < 0
}

// covers reports whether candidate i and others after it may bring what is
// missing.
func (c *choice) covers(i, left int) bool {
	for n, need := range c.needs {
		if c.gained[n]+need.brings[i]+int64(left-1)*need.most[i+1] < need.missing {
			return false
		}
	}
	return true
}

// cheapens reports whether candidate i and others after it may cost less than the
// best.
func (c *choice) cheapens(i, left int) bool {
	if c.best == nil {
		return true
	}
	with, rest := priceOf(c.chosen).plus(c.attempt.candidates[i]), c.floors[(i+1)*(c.size+1)+left-1]
	return with.and(rest).compare(priceOf(c.best.list)) < 0
}

// weigh tries the chosen.
func (c *choice) weigh() {
	*c.steps -= stepWhat + c.p.w.Workload.Pods()
	if places := c.p.fits(c.chosen, c.attempt.borrow); places != nil {
		c.best = cheaper(c.best, &victims{slices.Clone(c.chosen), places})
	}
}
