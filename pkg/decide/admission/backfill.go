package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// constrained reports whether a reservation applies to the workload, for a head or of
// nodes, or places are kept from it in the cluster that was chosen for it. It first recomputes
// all reservations for heads except the workload's own.
func (d *decision) constrained(w *Waiting, cluster string) bool {
	d.reserveHeads(w)
	return d.mustSpare(w) || len(d.keptFrom(w, cluster, d.now)) > 0 || slices.ContainsFunc(d.state.reservations, func(r *headReservation) bool { return r.appliesTo(w) })
}

// allocateReserved allocates, within a what-if on a cluster, what reservations keep
// from the workload, and returns those reservations. One that the workload ends before
// does not count.
func (d *decision) allocateReserved(w *Waiting, cluster string) (against []*headReservation) {
	for _, r := range d.state.reservations {
		if r.cluster == cluster && r.appliesTo(w) && !r.endsInTime(d.now, w.RunTime) {
			against = append(against, r)
		}
	}
	if len(against) > 0 {
		kept, places := d.keptFree(against)
		if own := d.ownNodes(w, cluster); len(own) > 0 {
			places = slices.DeleteFunc(slices.Clone(places), func(p workload.Placement) bool { return own[p.Node] })
		}
		d.state.fleets[cluster].Allocate(kept, places)
	}
	return against
}

// backfill looks for places that delay no head before the workload, on one cluster
// after the other. The caller has found places without regard to reservations.
func (d *decision) backfill(w *Waiting, flavored *flavoredSignature, clusters []string) (cluster string, places []workload.Placement, why *workload.Reason) {
	var delayed *headReservation
	var spared *workload.Reason
	onlyKept, cutBefore := true, d.state.searched.Cut
	for _, cluster := range clusters {
		if _, none := flavored.verdicts[cluster]; none || d.state.fleets[cluster].Len() == 0 {
			continue
		}
		places, against, reserved := d.backfillOn(w, flavored, cluster)
		if places != nil {
			return cluster, places, nil
		}
		if delayed == nil && len(against) > 0 {
			delayed = against[0]
		}
		kept := d.keptFrom(w, cluster, d.now)
		onlyKept = onlyKept && len(kept) > 0 && len(against) == 0 && len(reserved) == 0
		switch {
		case spared != nil:
		case len(reserved) > 0:
			w.class.spares()
			spared = d.reasonReserved(w, cluster, reserved[0])
		case len(kept) > 0:
			spared = kept[0].reasonKept(w)
		}
	}
	d.retryWithoutKept(w, clusters)
	if d.state.searched.Cut > cutBefore && d.retryWhenFull(w.class) {
		return "", nil, searchPutOff()
	}
	if delayed == nil && spared != nil {
		if onlyKept {
			d.keptWhy = spared
		}
		return "", nil, spared
	}
	if delayed == nil {
		return "", nil, &workload.Reason{Kind: workload.ReasonUnknown, Message: "undecided: the search for places outside head reservations reached its limit of steps"}
	}
	delayed.block(w.class)
	return "", nil, delayed.reasonBehindHead(w)
}

func (d *decision) backfillOn(w *Waiting, flavored *flavoredSignature, cluster string) ([]workload.Placement, []*headReservation, []*quota.Reservation) {
	fleet := d.state.fleets[cluster]
	savepoint := fleet.Begin()
	reserved := d.spare(w, cluster, d.now)
	against := d.allocateReserved(w, cluster)
	verdict, _ := d.solve(w.queue, fleet, flavored.w)
	fleet.Rollback(savepoint)
	if verdict.Outcome == placement.Fits {
		return verdict.Placements, nil, nil
	}
	// The heads may have other places at the same times.
	if len(against) > 0 && !slices.ContainsFunc(against, func(r *headReservation) bool { return !r.keptClear.IsZero() }) {
		if places := d.replanReservations(against, w, flavored, cluster); places != nil {
			return places, nil, nil
		}
	}
	return nil, against, reserved
}

// replanReservations places a gang without regard to reservations with a known start. If
// their heads still have places at those times, the reservations get those.
func (d *decision) replanReservations(against []*headReservation, w *Waiting, flavored *flavoredSignature, cluster string) []workload.Placement {
	fleet := d.state.fleets[cluster]
	if slices.ContainsFunc(against, func(r *headReservation) bool { return !r.sumAllows(fleet, flavored.w) }) {
		return nil
	}
	passing, _ := d.solveSparing(w.queue, w, cluster, flavored.w)
	if passing.Outcome != placement.Fits {
		return nil
	}
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	fleet.Allocate(flavored.w, passing.Placements) // for the one that passes
	replanned := make([][]workload.Placement, len(against))
	for i, r := range against {
		if replanned[i] = d.placesAround(r, against[:i], replanned[:i]); replanned[i] == nil {
			return nil
		}
	}
	for i, r := range against {
		r.places = replanned[i]
	}
	d.noteReplannedTogether(against)
	return passing.Placements
}

// sumAllows reports whether what will be free in sum at the start of the head is enough for
// it and the gang that passes it.
func (r *headReservation) sumAllows(fleet *placement.Fleet, passing *workload.Workload) bool {
	sum := fleet.Sum(r.flavored.w, passing)
	for _, g := range r.after {
		sum.Release(g.Workload, g.Placements)
	}
	return sum.Enough()
}

// placesAround returns places of a head at its start, with some other reservations planned again;
// nil when it has none.
func (d *decision) placesAround(r *headReservation, others []*headReservation, replanned [][]workload.Placement) []workload.Placement {
	fleet := d.state.fleets[r.cluster]
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	for _, other := range d.state.reservations {
		if other == r || other.cluster != r.cluster || !other.appliesTo(r.head) || !other.hasPlacesAt(r.start) {
			continue
		}
		places := other.places
		if i := slices.Index(others, other); i >= 0 {
			places = replanned[i]
		}
		fleet.Allocate(other.flavored.w, places)
	}
	for _, g := range r.after {
		fleet.Release(g.Workload, g.Placements)
	}
	d.spare(r.head, r.cluster, r.start)
	verdict, _ := d.solve(r.head.queue, fleet, r.flavored.w)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return verdict.Placements
}
