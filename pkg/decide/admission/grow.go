package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// grow gives a started gang the places that it asks for.
func (d *decision) grow(w *Waiting, a quota.Assess, placements []workload.Placement) {
	s := d.state
	g := s.started[w.Workload.ID]
	s.removeFromClass(w)
	s.waiting.Delete(w.Workload.ID)
	s.removeDemand(w)
	s.resize(g, withMore(g.Workload.PodSets, w.Workload.PodSets), merged(g.Placements, placements), withFlavors(g.Flavors, a.Flavors))
	s.dropSignature(w.signature)
	d.noteEntry(g, a.Charges)
	d.noteStarted(w, g, placements)
	d.noteTaken(w, g.Cluster, placements)
	d.plan.Growths = append(d.plan.Growths, Admission{Workload: g.Workload.ID, Cluster: g.Cluster, Placements: g.Placements, Flavors: g.Flavors})
	d.effects.reservationsReplanned = true
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
	if d.state.fleet(g.Cluster).Obeys(d.state.inTopology(g, whole.PodSets, g.Placements), merged(g.Placements, placements)) {
		return nil
	}
	w.class.retryOnlyBy(d.now.Add(topologyRetry))
	return &workload.Reason{
		Kind:    workload.ReasonTopology,
		Message: fmt.Sprintf("the nodes found violate the gang's topology constraints together with its running pods; the search is repeated in %s", topologyRetry),
	}
}
