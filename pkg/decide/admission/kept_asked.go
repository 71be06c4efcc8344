package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// keeper returns the first gang in order for which places may be kept, as of the beginning of the
// decision: gangs with requests only leave meanwhile. No node has come yet for those that ask now.
func (d *decision) keeper() *Waiting {
	if k := &d.keepers; !k.known {
		k.known = true
		if i := slices.IndexFunc(d.state.asked, func(o *Waiting) bool { return d.state.mayKeep(o, d.now) }); i >= 0 {
			k.first = d.state.asked[i]
		}
	}
	return d.keepers.first
}

// keepForAskers finds what is kept from a workload for gangs with requests, unless it is known, or
// all of these have a lower priority.
func (d *decision) keepForAskers(w *Waiting) {
	if first := d.keeper(); first != nil && w.Workload.Priority <= first.Workload.Priority {
		d.findKept()
	}
}

// findKept finds what is kept for gangs with requests, unless it is known. Each has its places
// beside those before it, in as many requests of a cluster as are counted for another.
func (d *decision) findKept() {
	if d.keepers.found || d.keeper() == nil {
		return
	}
	d.keepers.found = true
	d.keepers.searches++
	counted := map[string]int{}
	begun := map[string]placement.Savepoint{}
	for _, o := range d.state.asked {
		cluster := o.Asked.Cluster
		fleet := d.state.fleets[cluster]
		if fleet == nil || d.keepers.in[cluster] || counted[cluster] == mostCounted || !d.state.mayKeep(o, d.now) {
			continue
		}
		if counted[cluster]++; counted[cluster] == 1 {
			begun[cluster] = fleet.Begin()
		}
		if part := d.partOf(o, fleet); part != nil {
			fleet.Allocate(part.placed, part.places)
			d.keptParts = append(d.keptParts, part)
		}
	}
	for cluster, savepoint := range begun {
		d.state.fleets[cluster].Rollback(savepoint)
		if d.keepers.in == nil {
			d.keepers.in = map[string]bool{}
		}
		d.keepers.in[cluster] = true
	}
}

// partOf finds places for as many pods of a gang with a request as there are, on nodes that are
// not reserved for others; nil when there are none. Before the request is provisioned these are the
// pods that nodes are asked for, on nodes that have come since. A search that has no answer, for
// want of allowance, too, counts as no place.
func (d *decision) partOf(o *Waiting, fleet *placement.Fleet) *keptPart {
	part := &keptPart{asker: o, cluster: o.Asked.Cluster, until: o.Asked.ReadySince.Add(SettleProvisioned)}
	var nodes []string
	if !o.Asked.Ready {
		if nodes, part.until = d.state.cameFor(o.Asked, d.now); len(nodes) == 0 {
			return nil
		}
	}
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	d.close(o, part.cluster, func(r *quota.Reservation) bool { return r.Conflicts(d.now, o.RunTime) })
	on := fleet
	if !o.Asked.Ready {
		on = fleet.Only(nodes)
		d.spend(o.queue, stepsPerCopy*len(nodes))
	}
	all := &workload.Workload{PodSets: d.state.tree.Effective(o.asksFor(), o.Asked.Flavors)}
	sets, _ := d.mostPlaced(o.queue, on, all, true)
	part.placed = &workload.Workload{PodSets: slices.DeleteFunc(sets, func(set workload.PodSet) bool { return set.Count == 0 })}
	if len(part.placed.PodSets) == 0 {
		return nil
	}
	verdict, _ := d.solve(o.queue, on, part.placed)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	part.places = verdict.Placements
	return part
}
