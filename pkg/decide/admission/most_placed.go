package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// mostCounted bounds the requests in a cluster whose pods with places are counted for another.
const mostCounted = 32

// placed are the pods of a workload with a request that nodes are not asked for, and all when
// the nodes are there.
func (w *Waiting) placed() []workload.PodSet {
	sets := slices.Clone(w.Workload.PodSets)
	for _, p := range w.Asked.Pods {
		for i := range sets {
			if sets[i].Name == p.PodSet && !w.Asked.Ready {
				sets[i].Count = max(sets[i].Count-p.Pods, 0)
			}
		}
	}
	return sets
}

// asksFor are the pods of a workload with a request that nodes are asked for, and all when the
// nodes are there.
func (w *Waiting) asksFor() []workload.PodSet {
	sets := slices.Clone(w.Workload.PodSets)
	for i := range sets {
		if w.Asked.Ready {
			continue
		}
		asked := 0
		for _, p := range w.Asked.Pods {
			if p.PodSet == sets[i].Name {
				asked += p.Pods
			}
		}
		sets[i].Count = min(sets[i].Count, asked)
	}
	return sets
}

// mostPlaced returns the pod sets with as many pods as have places: one set after the other gets
// as many as there are beside those before it. One that has to stay together gets all or none,
// unless a part of it counts, too. The queue pays for the searches. One that has no answer counts
// as no place.
func (d *decision) mostPlaced(q *queue, fleet *placement.Fleet, w *workload.Workload, parts bool) (sets []workload.PodSet, found answered) {
	sets = slices.Clone(w.PodSets)
	for i := range sets {
		sets[i].Count = 0
	}
	fits := func() bool {
		verdict, cut := d.solve(q, fleet, &workload.Workload{PodSets: sets})
		found.undecided, found.cut = found.undecided || verdict.Outcome == placement.Unknown, found.cut || cut
		return verdict.Outcome == placement.Fits
	}
	for i := range sets {
		all := w.PodSets[i].Count
		sets[i].Count = all
		if all == 0 || fits() {
			continue
		}
		most := 0
		if sets[i].Topology == nil || parts {
			for low, high := 0, all-1; low <= high; {
				sets[i].Count = (low + high + 1) / 2
				if sets[i].Count == 0 || fits() {
					most, low = sets[i].Count, sets[i].Count+1
				} else {
					high = sets[i].Count - 1
				}
			}
		}
		sets[i].Count = most
	}
	return sets, found
}

// answered is whether searches have no answer: some are undecided, or cut for want of allowance.
type answered struct{ undecided, cut bool }
