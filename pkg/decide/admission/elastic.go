package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// A RayCluster that may start with fewer workers (workload.PodSet.MinCount) can give up those
// above its minimum while it runs. What it can give up is a part of the gang: a Started with
// these pods alone, which is a candidate like a whole gang, before any whole gang is one.

// surplus returns the part of a gang above its minimum, nil when it can give up nothing now:
// it starts or is torn down, is about to give something up, or asks for more.
func (s *State) surplus(g *Started) *Started {
	count := 0
	for i := range g.Workload.PodSets {
		count += spare(&g.Workload.PodSets[i])
	}
	asks := s.waiting.Get(g.Workload.ID)
	if count == 0 || g.Workload.Kind != workload.KindRayCluster || g.Terminating || g.Frozen || g.giving != nil || !g.Progress.Running || asks != nil {
		return nil
	}
	return g.part(count)
}

// spare returns how many pods a set of a running cluster has above its minimum. Those of
// slices, and replicas of several hosts, stay whole.
func spare(set *workload.PodSet) int {
	if set.MinCount == 0 || set.Role != workload.RoleWorker || set.Step > 1 || set.Topology != nil {
		return 0
	}
	return max(0, set.Count-set.MinCount)
}

// part returns the first pods of a gang that it can give up, at most that many: those on the
// nodes on which it has most, so that nodes become free.
func (g *Started) part(pods int) *Started {
	places := slices.Clone(g.Placements)
	slices.SortStableFunc(places, func(a, b workload.Placement) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Node, b.Node), cmp.Compare(a.PodSet, b.PodSet))
	})
	part, given := *g, map[string]int{}
	part.Placements, part.whole, part.giving = nil, g, nil
	for _, p := range places {
		set := podSetOf(g.Workload, p.PodSet)
		p.Pods = min(p.Pods, pods, spare(set)-given[p.PodSet])
		if p.Pods > 0 {
			part.Placements = append(part.Placements, p)
			given[p.PodSet] += p.Pods
			pods -= p.Pods
		}
	}
	w := *g.Workload
	w.PodSets = nil
	for _, set := range g.Workload.PodSets {
		if set.Count = given[set.Name]; set.Count > 0 {
			w.PodSets = append(w.PodSets, set)
		}
	}
	part.Workload, part.charges = &w, quota.ChargesOf(w.PodSets, g.Flavors)
	return &part
}

// gone reports whether what a nomination waits for has given its places back.
func (s *State) gone(g *Started) bool {
	if g.whole != nil {
		return s.started[g.Workload.ID] != g.whole || g.whole.giving != g
	}
	return s.started[g.Workload.ID] != g
}

// noteResized brings what a gang gives up to the pods that are still to go, and ends it when
// there are none.
func (g *Started) noteResized() {
	if g.giving == nil {
		return
	}
	more := 0
	for name, leaves := range g.leaves {
		more += max(0, podSetOf(g.Workload, name).Count-leaves)
	}
	if more == 0 {
		g.giving, g.leaves = nil, nil
		return
	}
	*g.giving = *g.part(more) // nominations await this one
}

// giveUp has a gang give up a part of it.
func (g *Started) giveUp(part *Started) {
	g.giving, g.leaves = part, map[string]int{}
	for _, set := range part.Workload.PodSets {
		g.leaves[set.Name] = podSetOf(g.Workload, set.Name).Count - set.Count
	}
}

// partsOf returns the candidates of the sets with what they can give up in their place; those
// that can give up nothing are left out.
func (d *decision) partsOf(sets []candidateSet) []candidateSet {
	var parts []candidateSet
	for _, set := range sets {
		var list []candidate
		for _, c := range set.candidates {
			if part := d.state.surplus(c.Started); part != nil && !c.evictedBefore {
				c.Started, c.regret = part, d.regretOf(part)
				list = append(list, c)
			}
		}
		if set.candidates, set.needs = list, nil; len(list) > 0 {
			parts = append(parts, set)
		}
	}
	return parts
}

// spareWhole has chosen victims that can be shrunk instead of evicted, the dearest first, and
// then has each of those that are shrunk give up no more than is needed.
func (p *preemption) spareWhole(v *victims) {
	dearest := make([]int, len(v.list))
	for i := range dearest {
		dearest[i] = i
	}
	slices.SortStableFunc(dearest, func(i, j int) int { return v.list[j].regret.compare(v.list[i].regret) })
	try := func(i int, part *Started) bool {
		list := slices.Clone(v.list)
		list[i].Started, list[i].regret = part, p.d.regretOf(part)
		places := p.enough(list, v.borrow)
		if places != nil {
			v.list, v.places = list, places
		}
		return places != nil
	}
	for _, i := range dearest {
		g := v.list[i].Started
		if g.whole == nil {
			if part := p.d.state.surplus(g); part == nil || !try(i, part) {
				continue
			}
		}
		whole, low, high := v.list[i].whole, 1, v.list[i].Workload.Pods()
		for low < high {
			if middle := (low + high) / 2; try(i, whole.part(middle)) {
				high = middle
			} else {
				low = middle + 1
			}
		}
	}
}

// enough returns the places of the workload with these victims gone, nil when quota does not
// permit them one after the other, or they are not enough.
func (p *preemption) enough(list []candidate, borrow bool) []workload.Placement {
	undo := p.d.state.savepoint()
	defer undo()
	for _, c := range list {
		if !p.permitted(c) {
			return nil
		}
		p.remove(c.Started)
	}
	return p.fits(borrow)
}
