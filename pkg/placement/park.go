package placement

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/workload"
)

// Park remembers a shape that does not fit, or of which that is unknown, so that
// Wake finds it when it may. The verdict must be of the fleet as it is now.
// shape is the caller's name for workloads with equal pod sets.
func (f *Fleet) Park(shape string, w *workload.Workload, v Verdict) {
	f.parked[shape] = true
}

// Unpark forgets a shape.
func (f *Fleet) Unpark(shape string) { delete(f.parked, shape) }

// Wake returns, in sorted order, the parked shapes that may fit since nodes have
// changed, and unparks them. The verdict on all others still holds. What a
// what-if changed and a Rollback undid wakes nobody.
func (f *Fleet) Wake() []string {
	if !f.grown {
		return nil
	}
	f.grown = false
	woken := slices.Sorted(maps.Keys(f.parked))
	clear(f.parked)
	return woken
}
