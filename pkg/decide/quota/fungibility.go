package quota

import (
	"cmp"
	"slices"
	"time"
)

// Assess judges the assignments against present usage, in the order in which Kueue
// would try them: the queue's flavorFungibility decides whether borrowing or preemption
// in an earlier flavor comes before a later flavor. With LowestCost those that are alike in
// this are in the order of their costs.
func (q *Queue) Assess(all []Assignment) []Assess {
	assessed := make([]Assess, len(all))
	for i := range all {
		a := Assess{Assignment: &all[i], Level: q.BorrowingLevel(all[i].Charges)}
		if a.Over = q.Over(all[i].Charges); a.Over != nil {
			a.Mode = Preempting
			if q.ExceedsPotential(all[i].Charges) {
				a.Mode = Impossible
			}
		}
		assessed[i] = a
	}
	q.sort(assessed)
	return assessed
}

func (q *Queue) sort(assessed []Assess) {
	slices.SortStableFunc(assessed, q.preferred)
	if q.Fungibility != nil && q.Fungibility.WhenEqual == LowestCost {
		q.cheapestOfEqual(assessed)
	}
}

// OrderDependsOnEvictions reports whether it can depend on what is evicted in a flavor whether
// that flavor comes before one that needs no evictions.
func (q *Queue) OrderDependsOnEvictions() bool {
	return q.PrefersNearer() || q.StopsWhenPreempting() && !q.stopsWhenBorrowing()
}

// SortAgain puts what Assess has returned in order when more is known of it.
func (q *Queue) SortAgain(assessed []Assess, all []Assignment) {
	slices.SortFunc(assessed, func(a, b Assess) int { return placeOf(all, a) - placeOf(all, b) })
	q.sort(assessed)
}

// placeOf is where the assignment is among those of the queue.
func placeOf(all []Assignment, a Assess) int {
	for i := range all {
		if &all[i] == a.Assignment {
			return i
		}
	}
	return len(all)
}

// cheapestOfEqual has assessed assignments that are alike by all other rules change places,
// so that the one that costs least comes first. Those that differ stay where they are.
func (q *Queue) cheapestOfEqual(assessed []Assess) {
	type kind struct {
		group int
		mode  Mode
		own   bool
		level int
	}
	places := map[kind][]int{}
	for i, a := range assessed {
		k := kind{q.group(a), a.Mode, a.Own, a.Level}
		places[k] = append(places[k], i)
	}
	for _, at := range places { // in any order: they have no place in common
		alike := make([]Assess, len(at))
		costs := make(map[*Assignment]int64, len(at))
		for j, i := range at {
			alike[j] = assessed[i]
			costs[alike[j].Assignment] = q.tree.costOf(alike[j].Charges)
		}
		slices.SortStableFunc(alike, func(a, b Assess) int { return cmp.Compare(costs[a.Assignment], costs[b.Assignment]) })
		for j, i := range at {
			assessed[i] = alike[j]
		}
	}
}

// preferred orders assessed assignments. One at which Kueue ends its search comes before
// all others. Of those, one within quota comes before preemption, that without a gang of the
// queue itself before that with one, and of two alike that which borrows from nearer by; with the
// preference BorrowingOverPreemption nearness comes first.
func (q *Queue) preferred(a, b Assess) int {
	if by := cmp.Compare(q.group(a), q.group(b)); by != 0 || q.group(a) != 1 {
		return by
	}
	byMode := cmp.Or(cmp.Compare(a.Mode, b.Mode), compareBool(a.Own, b.Own))
	if q.PrefersNearer() {
		return cmp.Or(cmp.Compare(a.Level, b.Level), byMode)
	}
	return cmp.Or(byMode, cmp.Compare(a.Level, b.Level))
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func (q *Queue) group(a Assess) int {
	switch {
	case a.Mode == Impossible:
		return 2
	case q.stopsAt(a):
		return 0
	}
	return 1
}

// stopsAt reports whether the search for a flavor ends at the assignment. Preemption ends
// it only where borrowing, if it needs that too, does.
func (q *Queue) stopsAt(a Assess) bool {
	return a.Mode != Impossible && (a.Level == 0 || q.stopsWhenBorrowing()) &&
		(a.Mode == Within || q.StopsWhenPreempting())
}

// PrefersNearer reports whether quota from nearer by comes before quota without preemption.
func (q *Queue) PrefersNearer() bool {
	return q.Fungibility != nil && q.Fungibility.Preference == BorrowingOverPreemption
}

// TriesNextFlavor reports whether the next flavor is tried after a request for nodes that
// fails, and within what time a request has to be provisioned; zero for no bound.
func (q *Queue) TriesNextFlavor() (next bool, within time.Duration) {
	f := q.Fungibility
	if f == nil || f.WhenNotProvisioned != TryNextFlavor {
		return false, 0
	}
	return true, time.Duration(f.ProvisionWithinSeconds) * time.Second
}

func (q *Queue) stopsWhenBorrowing() bool {
	return q.Fungibility == nil || q.Fungibility.WhenCanBorrow != TryNextFlavor
}

// StopsWhenPreempting reports whether preemption in a flavor comes before the
// next flavor.
func (q *Queue) StopsWhenPreempting() bool {
	return q.Fungibility != nil && (q.Fungibility.WhenCanPreempt == MayStopSearch || q.Fungibility.WhenCanPreempt == preemptAlias)
}
