package state

import "muster.dev/muster/pkg/spec/workload"

// lossOutcome is what the loss of places means for a gang.
type lossOutcome int

const (
	replacesPlaces  lossOutcome = iota // or is evicted, when no other place is free
	keepsPlaces                        // the database refuses to store other ones
	losesSubmitter                     // it is evicted: the submitter's place is written in the object
	losesHead                          // it is evicted: with the head pod Ray loses its state
	evictedByPolicy                    // onPodLoss is evict
	hasTiedPlaces                      // it is evicted: no pod of it can be moved alone
)

// outcomeOfLoss returns what the loss of the given places means for a gang. replacePlaces
// acts by it, and afterGrace announces it.
func (h *healing) outcomeOfLoss(e *entry, lost map[slot]int) lossOutcome {
	running := e.Phase == workload.Running
	lostOf := func(set string) bool {
		for at := range lost {
			if at.PodSet == set {
				return true
			}
		}
		return false
	}
	switch {
	case e.placesFixed:
		return keepsPlaces
	case running && lostOf(setOf(e, workload.RoleHead)):
		return losesHead
	case lostOf(submitterOf(e)):
		return losesSubmitter
	case running && h.rules(e).OnPodLoss == workload.EvictOnLoss:
		return evictedByPolicy
	case e.Interdependent() && len(h.boundPods(e)) > 0:
		return hasTiedPlaces
	}
	return replacesPlaces
}

// whyTied is why no pod of an interdependent gang is moved alone.
const whyTied = "the places of its pods depend on each other (affinity, topology spread or slices)"
