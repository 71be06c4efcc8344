package admission

import (
	"muster.dev/muster/pkg/decide/placement"
)

// placedReservations is a what-if on a cluster in which the places of reservations are
// allocated, so that the next one is made around them. Heads come in the order of their queue,
// and each is made around those before it: nearly always only the last one is to be added.
type placedReservations struct {
	savepoint placement.Savepoint
	placed    map[*headReservation]bool
}

// placeReservations allocates, within the what-if of a cluster, the places of the reservations
// around which that of the workload is made, and returns those reservations.
func (d *decision) placeReservations(w *Waiting, cluster string) []*headReservation {
	var others []*headReservation
	for _, r := range d.state.reservations {
		if r.cluster == cluster && r.appliesTo(w) {
			others = append(others, r)
		}
	}
	fleet, b := d.state.fleets[cluster], d.placedReservations[cluster]
	if b != nil && !b.isPartOf(others) {
		fleet.Rollback(b.savepoint)
		b = nil
	}
	if b == nil {
		b = &placedReservations{fleet.Begin(), map[*headReservation]bool{}}
		d.placedReservations[cluster] = b
	}
	for _, r := range others {
		if !b.placed[r] {
			b.placed[r] = true
			fleet.Allocate(r.flavored.w, r.places)
			d.reserving += len(r.places)
		}
	}
	return others
}

// isPartOf reports whether all that is allocated is of these reservations.
func (b *placedReservations) isPartOf(others []*headReservation) bool {
	found := 0
	for _, r := range others {
		if b.placed[r] {
			found++
		}
	}
	return found == len(b.placed)
}

// endPlacedReservations ends the what-ifs of all clusters.
func (d *decision) endPlacedReservations() {
	for cluster, b := range d.placedReservations { // each is of another fleet
		d.state.fleets[cluster].Rollback(b.savepoint)
	}
	d.placedReservations = nil
}
