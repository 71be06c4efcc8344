package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// keptFree is what fromFree has returned for reservations, and what that depends on.
// Many gangs in turn are tried against the same ones.
type keptFree struct {
	of   []reservedPlaces
	gang *workload.Workload
	on   []workload.Placement
}

// reservedPlaces is what a reservation was when it was asked about.
type reservedPlaces struct {
	*headReservation
	places []workload.Placement
	after  []heldPlaces
}

// heldPlaces is what a gang holds.
type heldPlaces struct {
	*workload.Workload
	places []workload.Placement
}

// keptFree is fromFree. The caller does not change what it returns.
func (d *decision) keptFree(reservations []*headReservation) (*workload.Workload, []workload.Placement) {
	if !slices.EqualFunc(d.kept.of, reservations, reservedPlaces.isStill) {
		d.kept = keptFree{of: make([]reservedPlaces, len(reservations))}
		for i, r := range reservations {
			d.kept.of[i] = reservedPlaces{headReservation: r, places: r.places}
			for _, g := range r.after {
				d.kept.of[i].after = append(d.kept.of[i].after, heldPlaces{g.Workload, g.Placements})
			}
		}
		d.kept.gang, d.kept.on = fromFree(reservations)
	}
	return d.kept.gang, d.kept.on
}

// isStill reports whether it is what the reservation is now.
func (was reservedPlaces) isStill(r *headReservation) bool {
	return was.headReservation == r && same(was.places, r.places) && slices.EqualFunc(was.after, r.after, func(held heldPlaces, g *Started) bool {
		return held.Workload == g.Workload && same(held.places, g.Placements)
	})
}

// same reports whether two lists are one in memory.
func same(a, b []workload.Placement) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
