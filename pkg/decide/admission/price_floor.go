package admission

import (
	"math"
	"slices"
)

// floors has lower bounds of prices among candidates.
type floors struct {
	list []candidate
	// cheapest has of each candidate the ones from it on that lose least, as indices:
	// those of the lowest levels first. The first n of them lose no more than any n.
	cheapest [][]int32
	ranks    []int // the smallest share rank from each candidate on
	gangs    []int // how many gangs there are from each candidate on, of which one may have several parts
	most     int   // of each of cheapest

	sum []levelRegret // of compare, to save allocations
}

// newFloors prepares bounds for sets of at most that many gangs.
func newFloors(list []candidate, most int) *floors {
	f := &floors{list: list, most: most, cheapest: make([][]int32, len(list)+1), ranks: make([]int, len(list)+1), gangs: make([]int, len(list)+1)}
	f.ranks[len(list)] = math.MaxInt
	for i, c := range slices.Backward(list) {
		f.ranks[i] = min(f.ranks[i+1], c.shareRank)
		cheapest := f.cheapest[i+1]
		if f.gangs[i] = f.gangs[i+1]; i+1 < len(list) && c.Workload.ID == list[i+1].Workload.ID {
			cheapest = slices.DeleteFunc(slices.Clone(cheapest), func(a int32) bool { // it has one part in a set
				return list[a].Workload.ID == c.Workload.ID && list[a].regretOf().compare(c.regretOf()) >= 0
			})
		} else {
			f.gangs[i]++
		}
		f.cheapest[i] = f.with(cheapest, int32(i))
	}
	return f
}

// with returns the cheapest with one more, the same ones if that one costs no less than any.
func (f *floors) with(cheapest []int32, i int32) []int32 {
	regret := f.list[i].regretOf()
	if full := len(cheapest) == f.most; full && f.list[cheapest[f.most-1]].regretOf().compare(regret) <= 0 {
		return cheapest
	}
	at, _ := slices.BinarySearchFunc(cheapest, regret, func(a int32, b levelRegret) int { return f.list[a].regretOf().compare(b) })
	longer := make([]int32, 0, min(f.most, len(cheapest)+1))
	longer = append(append(longer, cheapest[:at]...), i)
	return append(longer, cheapest[at:min(len(cheapest), f.most-1)]...)
}

// below reports whether the chosen and any n candidates from i on may cost less than the
// best.
func (f *floors) below(best *victims, chosen price, i, n int) bool {
	if best == nil {
		return true
	}
	f.sum = append(f.sum[:0], chosen.regrets...)
	n = min(n, len(f.cheapest[i]))
	for _, c := range f.cheapest[i][:n] {
		f.sum = addRegret(f.sum, f.list[c].regretOf())
	}
	floor := price{shareRank: chosen.shareRank, regrets: f.sum, gangs: chosen.gangs + n, countFirst: chosen.countFirst}
	if n > 0 {
		floor.shareRank = min(floor.shareRank, f.ranks[i])
	}
	return floor.compare(best.price) < 0
}
