package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// keptFree is what fromFree has returned for a reservation, and what that depends on.
// Many gangs in turn are tried against the reservation of one head.
type keptFree struct {
	reservation *headReservation
	places      []workload.Placement
	after       []heldPlaces
	gang        *workload.Workload
	on          []workload.Placement
}

// heldPlaces is what a gang holds.
type heldPlaces struct {
	*workload.Workload
	places []workload.Placement
}

// keptFree is fromFree. The caller does not change what it returns.
func (d *decision) keptFree(reservations []*headReservation) (*workload.Workload, []workload.Placement) {
	if len(reservations) > 1 {
		return fromFree(reservations)
	}
	r := reservations[0]
	if !d.kept.isOf(r) {
		d.kept = keptFree{reservation: r, places: r.places}
		for _, g := range r.after {
			d.kept.after = append(d.kept.after, heldPlaces{g.Workload, g.Placements})
		}
		d.kept.gang, d.kept.on = fromFree(reservations)
	}
	return d.kept.gang, d.kept.on
}

// isOf reports whether it is that of the reservation as it is now.
func (k *keptFree) isOf(r *headReservation) bool {
	return k.reservation == r && same(k.places, r.places) && slices.EqualFunc(k.after, r.after, func(held heldPlaces, g *Started) bool {
		return held.Workload == g.Workload && same(held.places, g.Placements)
	})
}

// same reports whether two lists are one in memory.
func same(a, b []workload.Placement) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
