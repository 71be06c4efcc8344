package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Growth is what a started gang asks for beyond its places: more pods of some of its
// pod sets, all or none.
type Growth struct {
	Workload workload.ID
	PodSets  []workload.PodSet // Count is the number of additional pods
	// Order and Since are of the request: the gang waits like one submitted then.
	Order int64
	Since time.Time
	// RunTime is the rest of the declared run time; zero when that is not known.
	RunTime time.Duration
}

// Grow enqueues a request of a started gang for more places, in its cluster and with
// its flavors, in place of an earlier one. The gang keeps its places in any case. The
// request may evict other gangs by the rules for waiting workloads.
func (s *State) Grow(g Growth) {
	started := s.started[g.Workload]
	if started == nil || started.Terminating {
		return
	}
	w := *started.Workload
	w.PodSets = g.PodSets
	s.Enqueue(Waiting{
		Workload: &w, Order: g.Order, Queue: started.Queue, Since: g.Since, RunTime: g.RunTime, Grows: true,
	})
}

// StopGrowing withdraws the request of a started gang for more places.
func (s *State) StopGrowing(id workload.ID) {
	if w := s.waiting.Get(id); w != nil && w.Grows {
		s.Dequeue(id)
	}
}

// Shrink reduces a started gang to these sizes and places, which are among those it
// has.
func (s *State) Shrink(id workload.ID, sets []workload.PodSet, kept []workload.Placement) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.resize(g, sets, kept, g.Flavors)
	s.noteCapacity(true)
	s.noteQuotaFreed(g.queue)
}

// resize charges a started gang for other sizes and places. It copies the workload,
// which a what-if may share.
func (s *State) resize(g *Started, sets []workload.PodSet, places []workload.Placement, flavors []workload.PodSetFlavors) {
	fleet := s.fleet(g.Cluster)
	fleet.Release(g.Workload, g.Placements)
	g.queue.quota.Release(g.charges)
	w := *g.Workload
	w.PodSets = sets
	g.Workload, g.Placements, g.Flavors = &w, places, flavors
	g.charges = quota.ChargesOf(sets, flavors)
	g.queue.quota.Allocate(g.charges)
	fleet.Allocate(g.Workload, g.Placements)
}

// clustersFor returns the clusters on which the workload may get places.
func (s *State) clustersFor(w *Waiting) []string {
	switch home := w.Workload.Home(); {
	case w.Grows:
	case home == "":
		return s.clusters
	case s.fleets[home] == nil:
		return nil
	default:
		return []string{home}
	}
	if g := s.started[w.Workload.ID]; g != nil && !g.Terminating {
		return []string{g.Cluster}
	}
	return nil
}

// grow gives a started gang the places that it asks for.
func (d *decision) grow(w *Waiting, a quota.Assess, placements []workload.Placement) {
	s := d.state
	g := s.started[w.Workload.ID]
	s.removeFromClass(w)
	s.waiting.Delete(w.Workload.ID)
	s.removeDemand(w)
	s.resize(g, withMore(g.Workload.PodSets, w.Workload.PodSets), merged(g.Placements, placements), withFlavors(g.Flavors, a.Flavors))
	s.dropSignature(w.signature)
	d.noteStarted(w, g, placements)
	d.plan.Growths = append(d.plan.Growths, Admission{g.Workload.ID, g.Cluster, g.Placements, g.Flavors})
	d.effects.reservationsMoved = true
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

// flavorConflict returns why a gang that grows cannot have these flavors: its pods have
// other flavors, or lack the tolerations of these. Nil when it can.
func (s *State) flavorConflict(w *Waiting, a quota.Assess) *workload.Reason {
	if !w.Grows {
		return nil
	}
	g := s.started[w.Workload.ID]
	for _, f := range a.Flavors {
		i := slices.IndexFunc(g.Flavors, func(has workload.PodSetFlavors) bool { return has.PodSet == f.PodSet })
		if i >= 0 {
			for name, flavor := range f.Flavors {
				if g.Flavors[i].Flavors[name] != flavor {
					return flavorReason(f.PodSet, name, flavor, fmt.Sprintf("its pods have flavor %q", g.Flavors[i].Flavors[name]))
				}
			}
			continue
		}
		template := &podSetOf(w.Workload, f.PodSet).Template
		for _, t := range s.tree.Terms(f).Tolerations {
			if !slices.Contains(template.Tolerations, t) {
				return flavorReason(f.PodSet, "", "", fmt.Sprintf("its flavor adds a toleration of %s, which pods of a set that was admitted with 0 pods lack", t.Key))
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

// topologyRetry is the delay after which a growing gang is tried again whose topology
// constraints exclude the places found. There may be others.
const topologyRetry = 10 * time.Second

// topologyConflict returns why a gang cannot have the places found together with those
// it has; nil when it can.
func (d *decision) topologyConflict(w *Waiting, placements []workload.Placement) *workload.Reason {
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
	w.class.retryAt = d.now.Add(topologyRetry)
	return &workload.Reason{
		Kind:    workload.ReasonTopology,
		Message: fmt.Sprintf("the nodes found violate the gang's topology constraints together with its running pods; the search is repeated in %s", topologyRetry),
	}
}
