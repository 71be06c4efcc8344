package admission

import (
	"cmp"
	"math"
)

// price is what the eviction of a set of gangs costs. Adding a gang never lowers it.
type price struct {
	gangs     int
	shareRank int // the greatest: of the queue with the smallest share
	highest   int32
	lost      int64
}

func priceOf(list []candidate) price {
	p := price{highest: math.MinInt32}
	for _, c := range list {
		p = p.plus(c)
	}
	return p
}

func (p price) plus(c candidate) price {
	return price{p.gangs + 1, max(p.shareRank, c.shareRank), max(p.highest, c.Workload.Priority), p.lost + c.lost}
}

func (p price) sum(other price) price {
	return price{p.gangs + other.gangs, max(p.shareRank, other.shareRank), max(p.highest, other.highest), p.lost + other.lost}
}

// compare orders prices: fewer gangs first, then those of the queues with the largest
// shares, then those whose highest priority is the lowest, then less lost work.
func (p price) compare(other price) int {
	return cmp.Or(cmp.Compare(p.gangs, other.gangs), cmp.Compare(p.shareRank, other.shareRank),
		cmp.Compare(p.highest, other.highest), cmp.Compare(p.lost, other.lost))
}

// cheaper returns the victims that cost less, a if they cost the same; nil stands for
// none.
func cheaper(a, b *victims) *victims {
	if a == nil || b != nil && priceOf(b.list).compare(priceOf(a.list)) < 0 {
		return b
	}
	return a
}
