package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
)

// mostReserving bounds the work of one decision on reservations, in nodes that are freed or
// taken in what-ifs, about half a second. Each reservation counts on the ends of those before it, so
// without a bound the work grows with the square of the depth. Heads for which nothing is
// left have no reservation until a later decision; the first in line always has one.
const mostReserving = 500_000

// reserveHeads recomputes the reservations that are stale: all of them or, for a workload that is
// tried, those that it must spare and those that these are made around. The others would be made
// again when it starts. It reports whether it reopened classes that a dropped or replaced
// reservation kept back.
//
// The reservation of a reopened head stays until the head is tried; that of the head
// being tried is left as it is.
func (d *decision) reserveHeads(tried *Waiting) (opened bool) {
	s := d.state
	if !s.anyReserves(d.now) {
		return false
	}
	of := make(map[*Waiting]*headReservation, len(s.reservations))
	for _, r := range s.reservations {
		of[r.head] = r
	}
	var heads []*Waiting
	for _, q := range s.sorted {
		heads = s.appendLackingPlaces(heads, q, of, d.now)
	}
	opened = d.endOthers(heads, of)
	slices.SortStableFunc(heads, func(a, b *Waiting) int {
		if a.queue == b.queue {
			return 0 // in the order of their queue
		}
		return before(a, b)
	})
	d.placedReservations = map[string]*placedReservations{}
	for _, w := range heads[:sparedBy(tried, heads)] {
		if w == tried {
			continue
		}
		r := of[w]
		if r != nil && !r.stale && (r.start.IsZero() || !d.now.After(r.start)) {
			continue
		}
		opened = opened || r != nil && len(r.blocked) > 0
		switch {
		case d.reserving <= mostReserving || w.queue.head() == w:
			d.reserve(w, r)
		case r != nil:
			d.effects.reservationsReplanned = true
			s.endReservation(r)
		}
	}
	d.endPlacedReservations()
	return opened
}

// sparedBy returns how many of the heads, from the first, have to have reservations before the
// workload is tried: up to the last one that comes before it. All of them without a workload.
func sparedBy(tried *Waiting, heads []*Waiting) int {
	if tried == nil {
		return len(heads)
	}
	for n := len(heads); n > 0; n-- {
		if heads[n-1] != tried && heads[n-1].comesBefore(tried) {
			return n
		}
	}
	return 0
}

// endOthers ends the reservations of all but these heads, and reports whether they kept
// classes back. Of the others, none is in the map afterwards.
func (d *decision) endOthers(heads []*Waiting, of map[*Waiting]*headReservation) (opened bool) {
	keep := make(map[*headReservation]bool, len(heads))
	for _, w := range heads {
		if r := of[w]; r != nil {
			keep[r] = true
		}
	}
	if len(keep) == len(d.state.reservations) {
		return false
	}
	for _, r := range slices.Clone(d.state.reservations) {
		if !keep[r] {
			opened = opened || len(r.blocked) > 0
			d.effects.reservationsReplanned = true
			delete(of, r.head)
			d.state.endReservation(r)
		}
	}
	return opened
}

// anyReserves reports whether a queue reserves for gangs, or did.
func (s *State) anyReserves(now time.Time) bool {
	return len(s.reservations) > 0 || slices.ContainsFunc(s.sorted, func(q *queue) bool { return q.reserves(now) })
}

// appendLackingPlaces appends, of a queue that reserves, the first gangs down to its depth
// that were refused for lack of places, in the order of the queue.
func (s *State) appendLackingPlaces(heads []*Waiting, q *queue, of map[*Waiting]*headReservation, now time.Time) []*Waiting {
	if !q.reserves(now) {
		return heads
	}
	for _, w := range q.foremost() {
		if w.class.unplaced.flavoredSignature != nil && (w.class.atOpen < 0 || of[w] != nil) {
			heads = append(heads, w)
		}
	}
	return heads
}

// reserve computes the reservation of a head. It replaces the old one and reopens the
// classes that the old one kept back. A reservation without a cluster means that there
// is none: the head fits nowhere even when all gangs have ended, or their ends are
// unknown and the patience of the head is not over.
func (d *decision) reserve(w *Waiting, old *headReservation) {
	s := d.state
	made := &headReservation{head: w, flavored: w.class.unplaced.flavoredSignature, flavors: w.class.unplaced.flavors}
	if old != nil {
		made.keptClear = old.keptClear
		s.endReservation(old)
	}
	var best *headReservation
	cutBefore := s.searched.Cut
	for _, cluster := range s.offering(s.clustersFor(w), made.flavors) {
		if found := d.reserveOn(w, made, cluster); found != nil && (best == nil || found.sooner(best)) {
			best = found
		}
	}
	if best != nil {
		made = best
	} else {
		made.keptClear = time.Time{}
		if s.searched.Cut > cutBefore && w.queue.head() == w { // it may have one; those after it leave it the steps
			s.repeatBy(d.fullAt(w.queue))
		}
	}
	if old != nil && made.sameAs(old) {
		made.reported = old.reported
	} else {
		d.noteReplanned(made)
	}
	i, _ := slices.BinarySearchFunc(s.reservations, made, func(a, b *headReservation) int { return before(a.head, b.head) })
	s.reservations = slices.Insert(s.reservations, i, made)
}

// sooner reports whether r has its places before other.
func (r *headReservation) sooner(other *headReservation) bool {
	if r.start.IsZero() != other.start.IsZero() {
		return other.start.IsZero()
	}
	if !r.start.Equal(other.start) {
		return r.start.Before(other.start)
	}
	return len(r.after) < len(other.after)
}

// reserveOn finds the fewest gangs, by expected end, after whose end the head has
// places on the cluster. It does not count on nodes that are reserved for others; if there
// are not enough without them, the head starts after the last of those reservations.
func (d *decision) reserveOn(w *Waiting, made *headReservation, cluster string) *headReservation {
	last := d.lastReserved(w, cluster)
	found := d.reserveFrom(w, made, cluster, d.now)
	if found == nil && last.After(d.now) {
		return d.reserveFrom(w, made, cluster, last)
	}
	return found
}

// reserveFrom is reserveOn for a start at that time or later.
func (d *decision) reserveFrom(w *Waiting, made *headReservation, cluster string, from time.Time) *headReservation {
	fleet := d.state.fleets[cluster]
	order := d.byExpectedEnd(cluster, made.keptClear)
	order = slices.DeleteFunc(order, func(e endingGang) bool { return e.Workload.ID == w.Workload.ID }) // a gang that grows goes on
	others := d.placeReservations(w, cluster)
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	order = withReserved(order, others, made)
	ended := 0
	for from.After(d.now) && ended < len(order) && order[ended].known && !order[ended].at.After(from) {
		ended++
	}
	d.releaseGangs(fleet, order[:ended])
	if !from.After(d.now) {
		d.spareAll(w, cluster)
	}
	needed, places := d.endsNeeded(fleet, order[ended:], made)
	if places == nil {
		return nil
	}
	needed += ended
	found := *made
	found.cluster, found.start = cluster, from
	known := made.keptClear.IsZero()
	for _, e := range order[:needed] {
		known = known && e.known
		if e.at.After(found.start) {
			found.start = e.at
		}
	}
	least := needed
	switch {
	case known:
		for needed < len(order) && order[needed].known && !order[needed].at.After(found.start) {
			needed++
		}
	case d.now.Before(w.patienceEnd()), w.queue.head() != w: // nodes are kept clear for the first in line alone
		return nil
	default:
		found.start = time.Time{}
		if found.keptClear.IsZero() {
			found.keptClear = d.now
		}
	}
	if needed > least {
		d.releaseGangs(fleet, order[ended:needed])
		verdict, _ := d.solve(w.queue, fleet, found.flavored.w)
		if verdict.Outcome != placement.Fits {
			return nil
		}
		places = verdict.Placements
	}
	found.places = places
	for _, e := range order[:needed] {
		if !e.reserved {
			found.after = append(found.after, e.Started)
		}
	}
	return &found
}
