package admission

import (
	"cmp"
	"math"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// price is what the eviction of a set of gangs costs.
type price struct {
	// shareRank is that of the queue with the smallest share when its gang is evicted.
	shareRank int
	// regrets are what is lost at each level that has a victim, the highest level first.
	regrets []levelRegret
	gangs   int
	// countFirst: the number of gangs counts before all else.
	countFirst bool
}

// level orders gangs by who is evicted last: those of the workload's own queue; of these as
// of the others those of the LocalQueue with the least use, where that counts; and of these
// the ones with the highest priority.
type level struct {
	own      bool
	useRank  int
	priority int32
}

type levelRegret struct {
	level
	regret
}

func (l level) compare(other level) int {
	if l.own != other.own {
		if l.own {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(l.useRank, other.useRank), cmp.Compare(l.priority, other.priority))
}

// regretOf returns the level of a candidate, and what its eviction loses.
func (c candidate) regretOf() levelRegret {
	return levelRegret{level{c.policy == withinQueue, c.useRank, c.Workload.Priority}, c.regret}
}

func (r levelRegret) compare(other levelRegret) int {
	return cmp.Or(r.level.compare(other.level), r.regret.compare(other.regret))
}

// addRegret adds to regrets, which it changes.
func addRegret(regrets []levelRegret, r levelRegret) []levelRegret {
	i, found := slices.BinarySearchFunc(regrets, r, func(a, b levelRegret) int { return b.level.compare(a.level) })
	if found {
		regrets[i].regret = regrets[i].plus(r.regret)
		return regrets
	}
	return slices.Insert(regrets, i, r)
}

// compareRegrets compares at the highest level first. A level without victims costs less
// than any victim at it.
func compareRegrets(a, b []levelRegret) int {
	return slices.CompareFunc(a, b, levelRegret.compare)
}

// priceOf returns the price of a set. Its shareRank is a lower bound, which holds for the
// gang that is evicted first.
func priceOf(list []candidate, by VictimOrder) price {
	p := price{shareRank: math.MaxInt, countFirst: by == FewestGangs}
	for _, c := range list {
		p = p.plus(c)
	}
	return p
}

// plus returns the price with one more victim, which is higher.
func (p price) plus(c candidate) price {
	return price{min(p.shareRank, c.shareRank), addRegret(slices.Clone(p.regrets), c.regretOf()), p.gangs + 1, p.countFirst}
}

// compare orders prices: first those of the queues with the largest shares, then those
// with the least regret at the highest level, then at the next one and so on, then fewer
// gangs. So no gang is evicted where gangs of a lower level are enough.
func (p price) compare(other price) int {
	if p.countFirst && p.gangs != other.gangs {
		return cmp.Compare(p.gangs, other.gangs)
	}
	return cmp.Or(cmp.Compare(p.shareRank, other.shareRank), compareRegrets(p.regrets, other.regrets), cmp.Compare(p.gangs, other.gangs))
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
	case a.cascades != b.cascades:
		if a.cascades {
			return b
		}
		return a
	case b.price.compare(a.price) < 0:
		return b
	}
	return a
}

// decided returns by what the victims were chosen before others, empty when they cost the
// same; and where that is lost work, the seconds that were compared.
func (v *victims) decided(other *victims) (by workload.ChosenBy, counted, otherCounted int64) {
	a, b := v.price, other.price
	switch {
	case v.fallback != other.fallback:
		return workload.ChosenByStrategy, 0, 0
	case v.cascades != other.cascades:
		return workload.ChosenByCascade, 0, 0
	case a.countFirst && a.gangs != b.gangs:
		return workload.ChosenByGangs, 0, 0
	case a.shareRank != b.shareRank:
		return workload.ChosenByShare, 0, 0
	}
	for i := range max(len(a.regrets), len(b.regrets)) {
		var x, y levelRegret
		switch {
		case i == len(a.regrets): // the others have a level more
			y = b.regrets[i]
			x.level = y.level
		case i == len(b.regrets):
			x = a.regrets[i]
			y.level = x.level
		default:
			x, y = a.regrets[i], b.regrets[i]
		}
		switch {
		case x.own != y.own:
			return workload.ChosenByQueue, 0, 0
		case x.useRank != y.useRank:
			return workload.ChosenByUse, 0, 0
		case x.priority != y.priority:
			return workload.ChosenByPriority, 0, 0
		case x.accelerators != y.accelerators:
			return workload.ChosenByAccelerators, x.accelerators, y.accelerators
		case x.pods != y.pods:
			return workload.ChosenByPods, x.pods, y.pods
		}
	}
	if a.gangs != b.gangs {
		return workload.ChosenByGangs, 0, 0
	}
	return "", 0, 0
}

// victimsOf returns the victims of a set of candidates with their price.
func (p *preemption) victimsOf(list []candidate, places []workload.Placement, a *candidateSet) *victims {
	price := priceOf(list, p.d.state.victimOrder)
	price.shareRank = p.shareRank(list, a)
	return &victims{list: list, places: places, price: price, fallback: a.fallback, borrow: a.borrow}
}

// weigh returns the cheaper victims, and remembers the others.
func (p *preemption) weigh(a, b *victims) *victims {
	chosen := cheaper(a, b)
	for _, v := range []*victims{a, b} {
		if v != nil && v != chosen && !slices.EqualFunc(v.list, chosen.list, func(x, y candidate) bool { return x.Workload.ID == y.Workload.ID }) {
			p.other = cheaper(p.other, v)
		}
	}
	return chosen
}
