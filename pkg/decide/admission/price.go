package admission

import (
	"cmp"
	"math"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// price is what the eviction of a set of gangs costs. Adding a gang never lowers it.
type price struct {
	gangs     int
	shareRank int // of the queue with the smallest share when its gang is evicted
	own       int // of them, gangs of the workload's own queue
	highest   int32
	lost      int64
}

// priceOf returns the price of a set. Its shareRank is a lower bound, which holds for the
// gang that is evicted first.
func priceOf(list []candidate) price {
	p := price{shareRank: math.MaxInt, highest: math.MinInt32}
	for _, c := range list {
		p = p.plus(c)
	}
	return p
}

func (p price) plus(c candidate) price {
	own := 0
	if c.policy == withinQueue {
		own = 1
	}
	return p.sum(price{1, c.shareRank, own, c.Workload.Priority, c.lost})
}

func (p price) sum(other price) price {
	return price{p.gangs + other.gangs, min(p.shareRank, other.shareRank), p.own + other.own, max(p.highest, other.highest), p.lost + other.lost}
}

// compare orders prices: fewer gangs first, then those of the queues with the largest
// shares, then fewer of the own queue, then those whose highest priority is the lowest,
// then less lost work.
func (p price) compare(other price) int {
	return cmp.Or(cmp.Compare(p.gangs, other.gangs), cmp.Compare(p.shareRank, other.shareRank),
		cmp.Compare(p.own, other.own), cmp.Compare(p.highest, other.highest), cmp.Compare(p.lost, other.lost))
}

// cheaper returns the victims that cost less, a if they cost the same; nil stands for
// none.
func cheaper(a, b *victims) *victims {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.fallback != b.fallback:
		if a.fallback {
			return b
		}
		return a
	case b.price.compare(a.price) < 0:
		return b
	}
	return a
}

// victimsOf returns the victims of a set of candidates with their price.
func (p *preemption) victimsOf(list []candidate, places []workload.Placement, a *candidateSet) *victims {
	price := priceOf(list)
	price.shareRank = p.shareRank(list, a)
	return &victims{list, places, price, a.fallback}
}

// weigh returns the cheaper victims, and remembers the others.
func (p *preemption) weigh(a, b *victims) *victims {
	chosen := cheaper(a, b)
	for _, v := range []*victims{a, b} {
		if v != nil && v != chosen && !slices.EqualFunc(v.list, chosen.list, func(x, y candidate) bool { return x.Started == y.Started }) {
			p.other = cheaper(p.other, v)
		}
	}
	return chosen
}
