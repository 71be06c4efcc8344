package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// admit starts the workload in the sizes of what has been placed.
func (d *decision) admit(w *Waiting, a quota.Assess, placed *flavoredSignature, cluster string, placements []workload.Placement) {
	if w.Grows {
		d.grow(w, a, placements)
		return
	}
	s := d.state
	admitted, sets := w.Workload, placed.sizesOf(w.Workload)
	if sets != nil {
		smaller := *w.Workload
		smaller.PodSets = sets
		admitted = &smaller
	}
	if sets == nil && w.defaulted {
		sets = w.Workload.PodSets
	}
	d.plan.Admissions = append(d.plan.Admissions, Admission{w.Workload.ID, cluster, placements, a.Flavors, sets})
	s.removeFromClass(w)
	s.Start(Started{
		Workload: admitted, Order: w.Order, Queue: w.queue.name,
		Cluster: cluster, Placements: placements, Flavors: a.Flavors, Admitted: d.now,
		RunTime: w.RunTime,
	})
	g := s.started[w.Workload.ID]
	d.noteEntry(g, g.charges)
	d.noteStarted(w, g, placements)
	d.noteTaken(w, cluster, placements)
	s.waiting.Delete(w.Workload.ID)
	s.removeDemand(w)
	s.dropSignature(w.signature)
	d.noteUsage(w.queue, a)
}

// sizesOf returns the pod sets of the workload in the sizes that were placed; nil when it
// was placed with all pods.
func (f *flavoredSignature) sizesOf(w *workload.Workload) []workload.PodSet {
	var fewer []workload.PodSet
	for i, placed := range f.w.PodSets {
		if by := w.PodSets[i].Count - placed.Count; by > 0 {
			if fewer == nil {
				fewer = slices.Clone(w.PodSets)
			}
			fewer[i].Count, fewer[i].Resized = placed.Count, fewer[i].Resized-by
		}
	}
	return fewer
}
