package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// noteStarted notes that the workload has got placements, as a part of the gang.
func (d *decision) noteStarted(w *Waiting, g *Started, placements []workload.Placement) {
	d.addAwaitedEnd(g, w.RunTime)
	d.invalidateReservations(w, g.Cluster, placements)
	d.noteEvictable(g)
}

// addAwaitedEnd adds a gang to the reservations whose heads start after its end, so
// that they count on what it frees.
func (d *decision) addAwaitedEnd(g *Started, runTime time.Duration) {
	for _, r := range d.state.reservations {
		if r.cluster == g.Cluster && r.endsInTime(d.now, runTime) && !slices.Contains(r.after, g) {
			r.after = append(r.after, g)
		}
	}
}

// invalidateReservations marks reservations stale whose nodes a placement uses and
// that did not constrain it.
func (d *decision) invalidateReservations(w *Waiting, cluster string, places []workload.Placement) {
	var nodes map[string]bool
	for _, r := range d.state.reservations {
		if r.stale || r.cluster != cluster || r.head == w || r.appliesTo(w) {
			continue
		}
		if nodes == nil {
			nodes = make(map[string]bool, len(places))
			for _, p := range places {
				nodes[p.Node] = true
			}
		}
		r.stale = slices.ContainsFunc(r.places, func(p workload.Placement) bool { return nodes[p.Node] })
	}
}

// noteReplanned notes that a reservation has other places, and marks those stale that
// were made around it: their heads come later.
func (d *decision) noteReplanned(r *headReservation) {
	for _, other := range d.state.reservations {
		if other.cluster == r.cluster && r.appliesTo(other.head) {
			other.stale = true
		}
	}
	d.effects.reservationsReplanned = true
	d.trying.rooms = nil // no eviction is to delay a head
}

// noteReplannedTogether is noteReplanned of reservations that were made around each other.
func (d *decision) noteReplannedTogether(replanned []*headReservation) {
	for _, other := range d.state.reservations {
		if !slices.Contains(replanned, other) && slices.ContainsFunc(replanned, func(r *headReservation) bool { return other.cluster == r.cluster && r.appliesTo(other.head) }) {
			other.stale = true
		}
	}
	d.effects.reservationsReplanned = true
	d.trying.rooms = nil // no eviction is to delay a head
}
