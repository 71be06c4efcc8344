package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Growth is what a started gang asks for beyond its places: so many pods more of
// some of its pod sets, all or none.
type Growth struct {
	Workload workload.ID
	PodSets  []workload.PodSet // Count is by how many each grows
	// Order and Since are of the request: a gang that grows stands in line like one
	// that was submitted then.
	Order int64
	Since time.Time
	// RunTime is how long the gang is declared to run on; zero when that is not
	// known.
	RunTime time.Duration
}

// Grow has a started gang stand in line for more places, in its cluster and in
// the flavors that it has. It replaces what the gang has asked for before. The
// gang keeps its places whatever comes of it, and nobody is evicted but by the
// rules for those who wait.
func (s *State) Grow(g Growth) {
	started := s.started[g.Workload]
	if started == nil || started.Going {
		return
	}
	w := *started.Workload
	w.PodSets = g.PodSets
	s.Enqueue(Waiting{
		Workload: &w, Order: g.Order, Queue: started.Queue, Since: g.Since, RunTime: g.RunTime, Grows: true,
	})
}

// StopGrowing takes back what a started gang has asked for.
func (s *State) StopGrowing(id workload.ID) {
	if w := s.waiting.Get(id); w != nil && w.Grows {
		s.Dequeue(id)
	}
}

// Shrink gives a started gang other sizes and the places that it keeps, which are
// among those it has.
func (s *State) Shrink(id workload.ID, sets []workload.PodSet, kept []workload.Placement) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.reshape(g, sets, kept, g.Flavors)
	s.grown = true
	s.freed[g.queue.quota.Root()] = true
}

// reshape charges a started gang for other sizes and places. Its workload is
// copied: a what-if shares it.
func (s *State) reshape(g *Started, sets []workload.PodSet, places []workload.Placement, flavors []workload.PodSetFlavors) {
	fleet := s.fleet(g.Cluster)
	fleet.Give(g.Workload, g.Placements)
	g.queue.quota.Free(g.charges)
	w := *g.Workload
	w.PodSets = sets
	g.Workload, g.Placements, g.Flavors = &w, places, flavors
	g.charges = quota.ChargesOf(sets, flavors)
	g.queue.quota.Use(g.charges)
	fleet.Take(g.Workload, g.Placements)
}

// clustersFor returns the clusters on which the workload may get places.
func (s *State) clustersFor(w *Waiting) []string {
	if !w.Grows {
		return s.clusters
	}
	if g := s.started[w.Workload.ID]; g != nil && !g.Going {
		return []string{g.Cluster}
	}
	return nil
}

// grow gives a started gang what it has asked for.
func (d *decision) grow(w *Waiting, a quota.Assess, placements []workload.Placement) {
	s := d.state
	g := s.started[w.Workload.ID]
	s.fromBucket(w)
	s.waiting.Delete(w.Workload.ID)
	s.unexpect(w)
	s.reshape(g, withMore(g.Workload.PodSets, w.Workload.PodSets), merged(g.Placements, placements), withFlavors(g.Flavors, a.Flavors))
	s.drop(w.shape)
	d.noteShort(g, w.RunTime)
	d.noteTaken(w, g.Cluster, placements)
	d.noteVictim(g)
	d.plan.Growths = append(d.plan.Growths, Admission{g.Workload.ID, g.Cluster, g.Placements, g.Flavors})
	d.moved = true
}

func withMore(sets, more []workload.PodSet) []workload.PodSet {
	all := slices.Clone(sets)
	for i := range all {
		for _, m := range more {
			if m.Name == all[i].Name {
				all[i].Count += m.Count
			}
		}
	}
	return all
}

func withFlavors(flavors, more []workload.PodSetFlavors) []workload.PodSetFlavors {
	all := slices.Clone(flavors)
	for _, m := range more {
		if !slices.ContainsFunc(all, func(f workload.PodSetFlavors) bool { return f.PodSet == m.PodSet }) {
			all = append(all, m)
		}
	}
	return all
}

// unsuited says why a gang that grows cannot have these flavors: its pods have
// others already, or were made without what the flavors add to them. Nil when it
// can.
func (s *State) unsuited(w *Waiting, a quota.Assess) *workload.Reason {
	if !w.Grows {
		return nil
	}
	g := s.started[w.Workload.ID]
	for _, f := range a.Flavors {
		i := slices.IndexFunc(g.Flavors, func(has workload.PodSetFlavors) bool { return has.PodSet == f.PodSet })
		if i >= 0 {
			for name, flavor := range f.Flavors {
				if g.Flavors[i].Flavors[name] != flavor {
					return flavorReason(f.PodSet, name, flavor, "the gang has flavor "+g.Flavors[i].Flavors[name]+" there")
				}
			}
			continue
		}
		template := &podSetOf(w.Workload, f.PodSet).Template
		for _, t := range s.tree.Terms(f).Tolerations {
			if !slices.Contains(template.Tolerations, t) {
				return flavorReason(f.PodSet, "", "", fmt.Sprintf("its flavor tolerates %s, which pods of a set that was admitted empty do not", t.Key))
			}
		}
	}
	return nil
}

func flavorReason(set string, name resource.Name, flavor, why string) *workload.Reason {
	message := fmt.Sprintf("pod set %q cannot grow: %s", set, why)
	if flavor != "" {
		message = fmt.Sprintf("pod set %q cannot grow in flavor %q of %s: %s", set, flavor, name, why)
	}
	return &workload.Reason{Kind: workload.ReasonQuota, Message: message}
}

func podSetOf(w *workload.Workload, name string) *workload.PodSet {
	i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == name })
	return &w.PodSets[i]
}

// lookAgain is when a gang is looked at again for which places were found that
// its rules on domains do not allow beside those that it has. That others do not
// exist is not known.
const lookAgain = 10 * time.Second

// disobeyed says why the places found cannot be had beside those that a gang has
// already; nil when they can.
func (d *decision) disobeyed(w *Waiting, placements []workload.Placement) *workload.Reason {
	if !w.Grows {
		return nil
	}
	g := d.state.started[w.Workload.ID]
	whole := *g.Workload
	whole.PodSets = withMore(g.Workload.PodSets, w.Workload.PodSets)
	near := slices.ContainsFunc(whole.PodSets, func(set workload.PodSet) bool { return set.Topology != nil })
	if !near && !whole.Interdependent() {
		return nil
	}
	if d.state.fleet(g.Cluster).Obeys(&whole, merged(g.Placements, placements)) {
		return nil
	}
	w.bucket.retryAt = d.now.Add(lookAgain)
	return &workload.Reason{
		Kind: workload.ReasonUnknown, Message: "the places that were found break the gang's rules on domains beside those that it has; others are looked for later",
	}
}
