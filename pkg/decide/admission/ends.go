package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// expectedEnd returns when a started gang is expected to end, and whether that is
// known. A gang that is torn down may be gone at any time. A gang over its declared run
// time has some grace; then its end is unknown.
func (g *Started) expectedEnd(now time.Time) (at time.Time, known bool) {
	if g.Terminating {
		return now, true
	}
	if g.Frozen || g.RunTime <= 0 {
		return time.Time{}, false
	}
	declared := g.Admitted.Add(g.RunTime)
	if !now.After(declared) {
		return declared, true
	}
	late := declared.Add(max(time.Minute, g.RunTime/10))
	return late, !now.After(late)
}

// endingGang is a started gang with its expected end, or one that will start on reserved
// places.
type endingGang struct {
	*Started
	at       time.Time
	known    bool
	reserved bool
}

// byExpectedEnd returns the gangs of a cluster by expected end: known ends first, then
// the others by admission. Gangs that were admitted since the nodes
// are kept clear come last.
func (d *decision) byExpectedEnd(cluster string, keptClear time.Time) []endingGang {
	var order []endingGang
	for _, g := range d.state.started {
		if g.Cluster == cluster {
			at, known := g.expectedEnd(d.now)
			order = append(order, endingGang{Started: g, at: at, known: known})
		}
	}
	group := func(e endingGang) int {
		switch {
		case !keptClear.IsZero() && e.Admitted.After(keptClear):
			return 2
		case !e.known:
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(a, b endingGang) int {
		byGroup := cmp.Compare(group(a), group(b))
		if byGroup == 0 && group(a) == 0 {
			byGroup = a.at.Compare(b.at)
		}
		return cmp.Or(byGroup, a.Admitted.Compare(b.Admitted), cmp.Compare(a.Order, b.Order))
	})
	return order
}

// withReserved adds the ends of gangs that have reservations to the known ends, if they are
// known and the nodes are not kept clear for the one that waits for them. Their places count as
// taken from now on, although they start later.
func withReserved(order []endingGang, others []*headReservation, made *headReservation) []endingGang {
	if !made.keptClear.IsZero() || len(others) == 0 {
		return order
	}
	known := slices.IndexFunc(order, func(e endingGang) bool { return !e.known })
	if known < 0 {
		known = len(order)
	}
	all := slices.Clone(order[:known])
	for _, other := range others {
		if end := other.end(); !end.IsZero() {
			g := &Started{Workload: other.flavored.w, Placements: other.places}
			all = append(all, endingGang{Started: g, at: end, known: true, reserved: true})
		}
	}
	slices.SortStableFunc(all, func(a, b endingGang) int { return a.at.Compare(b.at) })
	return append(all, order[known:]...)
}

func (d *decision) releaseGangs(fleet *placement.Fleet, gangs []endingGang) {
	for _, e := range gangs {
		d.reserving += len(e.Placements)
		fleet.Release(e.Workload, e.Placements)
	}
}

// endsNeeded returns how many gangs, from the first, have to end so that the head has
// places, and these; no places when all are not enough. It begins with as many as free enough in sum. More
// room never hurts, so it then doubles the number until it is enough and halves the last
// stride.
func (d *decision) endsNeeded(fleet *placement.Fleet, order []endingGang, r *headReservation) (needed int, places []workload.Placement) {
	least := endsForSum(fleet, order, r.flavored.w)
	if least > len(order) {
		return 0, nil
	}
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	given, ends := 0, min(max(1, least), len(order)) // given are not enough
	for stride := 1; ; stride *= 2 {
		before := fleet.Begin()
		d.releaseGangs(fleet, order[given:ends])
		if places = d.placesOf(fleet, r); places != nil {
			fleet.Rollback(before)
			break
		}
		if ends == len(order) {
			return 0, nil
		}
		given, ends = ends, min(ends+stride, len(order))
	}
	needed = leastEnough(max(given, least-1), ends, func(n int) bool { // only if given of them are released
		before := fleet.Begin()
		defer fleet.Rollback(before)
		d.releaseGangs(fleet, order[given:n])
		found := d.placesOf(fleet, r)
		if found != nil {
			places = found // the last number that is enough is the least
		}
		return found != nil
	})
	return needed, places
}

// placesOf returns the places that the head has in a what-if, nil for none.
func (d *decision) placesOf(fleet *placement.Fleet, r *headReservation) []workload.Placement {
	verdict, _ := d.solve(r.head.queue, fleet, r.flavored.w)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return verdict.Placements
}

// endsForSum returns the least number of gangs, from the first, after whose end as much is
// free in sum as the workload requests; more than there are when that is never so.
func endsForSum(fleet *placement.Fleet, order []endingGang, w *workload.Workload) int {
	sum := fleet.Sum(w)
	for n, e := range order {
		if sum.Enough() {
			return n
		}
		sum.Release(e.Workload, e.Placements)
	}
	if sum.Enough() {
		return len(order)
	}
	return len(order) + 1
}

// leastEnough returns the least n of low < n <= high that is enough; high is.
func leastEnough(low, high int, enough func(int) bool) int {
	for low+1 < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
