package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// constrained reports whether a reservation applies to the workload. It first
// recomputes all reservations except the workload's own.
func (d *decision) constrained(w *Waiting) bool {
	d.reserveHeads(w)
	return slices.ContainsFunc(d.state.reservations, func(r *headReservation) bool { return r.appliesTo(w) })
}

// allocateReserved allocates, within a what-if on a cluster, what reservations keep
// from the workload, and returns those reservations. One that the workload ends before
// does not count.
func (d *decision) allocateReserved(w *Waiting, cluster string) (against []*headReservation) {
	for _, r := range d.state.reservations {
		if r.cluster == cluster && r.appliesTo(w) && !r.endsInTime(d.now, w.RunTime) {
			d.state.fleets[cluster].Allocate(r.fromFree())
			against = append(against, r)
		}
	}
	return against
}

// backfill looks for places that delay no head before the workload, on one cluster
// after the other. The caller has found places without regard to reservations.
func (d *decision) backfill(w *Waiting, flavored *flavoredSignature) (cluster string, places []workload.Placement, why *workload.Reason) {
	var delayed *headReservation
	for _, cluster := range d.state.clustersFor(w) {
		if _, none := flavored.verdicts[cluster]; none || d.state.fleets[cluster].Len() == 0 {
			continue
		}
		places, against := d.backfillOn(w, flavored, cluster)
		if places != nil {
			return cluster, places, nil
		}
		if delayed == nil && len(against) > 0 {
			delayed = against[0]
		}
	}
	if delayed == nil {
		return "", nil, &workload.Reason{Kind: workload.ReasonUnknown, Message: "undecided: the search for places outside head reservations reached its limit of steps"}
	}
	delayed.block(w.class)
	return "", nil, delayed.reasonBehindHead(w)
}

func (d *decision) backfillOn(w *Waiting, flavored *flavoredSignature, cluster string) ([]workload.Placement, []*headReservation) {
	fleet := d.state.fleets[cluster]
	mark := fleet.Begin()
	against := d.allocateReserved(w, cluster)
	verdict, _ := d.solve(w.queue, fleet, flavored.w)
	fleet.Rollback(mark)
	if verdict.Outcome == placement.Fits {
		return verdict.Placements, nil
	}
	// The head may have other places at the same time.
	if len(against) == 1 && against[0].keptClear.IsZero() {
		if places := d.moveReservation(against[0], w, flavored); places != nil {
			return places, nil
		}
	}
	return nil, against
}

// moveReservation places a gang without regard to a reservation with a known start. If
// the head still has places at that time, the reservation moves there.
func (d *decision) moveReservation(r *headReservation, w *Waiting, flavored *flavoredSignature) []workload.Placement {
	fleet := d.state.fleets[r.cluster]
	passing, _ := d.solve(w.queue, fleet, flavored.w)
	if passing.Outcome != placement.Fits {
		return nil
	}
	mark := fleet.Begin()
	for _, other := range d.state.reservations {
		if other != r && other.cluster == r.cluster && other.appliesTo(r.head) {
			fleet.Allocate(other.flavored.w, other.places)
		}
	}
	for _, g := range r.after {
		fleet.Release(g.Workload, g.Placements)
	}
	fleet.Allocate(flavored.w, passing.Placements)
	moved, _ := d.solve(w.queue, fleet, r.flavored.w) // for the one that passes
	fleet.Rollback(mark)
	if moved.Outcome != placement.Fits {
		return nil
	}
	r.places = moved.Placements
	d.noteMoved(r)
	return passing.Placements
}
