package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// keepForAskers finds what is kept for gangs with requests, unless it is known. Each has its places
// beside those before it, in as many requests of a cluster as are counted for another.
func (d *decision) keepForAskers() {
	if d.keptFound {
		return
	}
	d.keptFound = true
	counted := map[string]int{}
	begun := map[string]placement.Savepoint{}
	for _, o := range d.state.asked {
		until, cluster := d.state.keptUntil(o), o.Asked.Cluster
		fleet := d.state.fleets[cluster]
		if !d.now.Before(until) || fleet == nil || counted[cluster] == mostCounted {
			continue
		}
		if counted[cluster]++; counted[cluster] == 1 {
			begun[cluster] = fleet.Begin()
		}
		if part := d.partOf(o, fleet); part != nil {
			part.until = until
			fleet.Allocate(part.placed, part.places)
			d.keptParts = append(d.keptParts, part)
		}
	}
	for cluster, savepoint := range begun {
		d.state.fleets[cluster].Rollback(savepoint)
	}
}

// partOf finds places for as many pods of a gang with a request as there are, on nodes that are
// not reserved for others; nil when there are none.
func (d *decision) partOf(o *Waiting, fleet *placement.Fleet) *keptPart {
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	d.close(o, o.Asked.Cluster, func(r *quota.Reservation) bool { return r.Conflicts(d.now, o.RunTime) })
	all := &workload.Workload{PodSets: d.state.tree.Effective(o.Workload.PodSets, o.Asked.Flavors)}
	sets, _ := d.mostPlaced(o.queue, fleet, all, true)
	placed := &workload.Workload{PodSets: slices.DeleteFunc(sets, func(set workload.PodSet) bool { return set.Count == 0 })}
	if len(placed.PodSets) == 0 {
		return nil
	}
	verdict, _ := d.solve(o.queue, fleet, placed)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	return &keptPart{asker: o, placed: placed, places: verdict.Placements}
}
