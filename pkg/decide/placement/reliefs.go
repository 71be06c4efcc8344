package placement

import "muster.dev/muster/pkg/spec/workload"

// Reliefs returns, for each of some started gangs, an upper bound of how many more pods
// of the set its nodes could take if all of these gangs were gone. It ignores rules on
// domains and host ports, and counts each node for every gang on it. It costs O(places)
// and changes nothing.
func (f *Fleet) Reliefs(set *workload.PodSet, count int, gang func(int) (*workload.Workload, []workload.Placement)) []int64 {
	f.refile() // which nodes are left out, and what runs on them, is looked up by their group
	k := f.newKind(set, 0)
	freed, gains := make([]vector, len(f.slots)), make([]int64, len(f.slots)) // by slot
	var last *workload.PodSet                                                 // most gangs are like the one before
	var requests vector
	for i := range count {
		w, placements := gang(i)
		for _, p := range placements {
			of, n := podSet(w, p.PodSet), f.nodes[p.Node]
			if of == nil || n == nil {
				continue
			}
			if of != last {
				last, requests = of, f.columns.vector(of.Template.Requests)
			}
			freed[n.slot] = freed[n.slot].plus(requests, int64(p.Pods))
		}
	}
	for slot, amounts := range freed {
		if n := f.slots[slot]; amounts != nil && n.present && k.filter.eligible(n) {
			gains[slot] = int64(k.fits(n.free.plus(amounts, 1), min(k.count, k.most)) - k.on(n.group, k.count))
		}
	}
	reliefs := make([]int64, count)
	for i := range reliefs {
		_, placements := gang(i)
		for _, p := range placements {
			if n := f.nodes[p.Node]; n != nil {
				reliefs[i] += gains[n.slot]
			}
		}
	}
	return reliefs
}
