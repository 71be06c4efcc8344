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

func podSetOf(w *workload.Workload, name string) *workload.PodSet {
	i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == name })
	return &w.PodSets[i]
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

// shrink has a gang give up a part of it.
func (d *decision) shrink(part *Started, why workload.Reason) {
	part.whole.giveUp(part)
	why.Kind = workload.ReasonShrunk
	d.plan.Shrinks = append(d.plan.Shrinks, Shrink{part.Workload.ID, part.Workload.PodSets, part.Placements, why})
}
