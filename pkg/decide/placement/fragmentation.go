package placement

import "muster.dev/muster/pkg/spec/workload"

// Fragmentation ranks places for a gang among fleets; the least is best. It is the measure
// by which packing chooses nodes (Cost), summed over the nodes that the places use: how many
// free devices the gang leaves that typical pods cannot use, and, as a tie-break, how idle
// the nodes are before. The places must fit; the fleet stays as it is.
func (f *Fleet) Fragmentation(w *workload.Workload, places []workload.Placement) int64 {
	typical, weight := f.typicalPods()
	used := map[string]bool{}
	for _, p := range places {
		used[p.Node] = true
	}
	type before struct{ stranded, idle int64 }
	was := make(map[string]before, len(used))
	for name := range used {
		if n := f.nodes[name]; n != nil {
			was[name] = before{f.stranded(typical, n.free, n), f.columns.devices(n.free)}
		}
	}
	savepoint := f.Begin()
	f.Allocate(w, places)
	sum := int64(0)
	for name, b := range was { // a sum, so the order does not matter
		n := f.nodes[name]
		sum = add(sum, Cost(f.stranded(typical, n.free, n)-b.stranded, weight, b.idle, 1, n.free.at(f.cpu)))
	}
	f.Rollback(savepoint)
	return sum
}

// Idle returns how many devices are free on all nodes.
func (f *Fleet) Idle() int64 {
	f.refile()
	return f.idle
}
