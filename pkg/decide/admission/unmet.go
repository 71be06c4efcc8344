package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// Unmet returns what waiting gangs lack that are within quota and have no places, with at
// most that many shapes. The work is in proportion to the number of different gangs.
func (s *State) Unmet(most int) workload.Demand {
	type equal struct {
		first *Waiting
		gangs int
		why   *workload.Reason
		asked bool
	}
	var all []equal
	for _, q := range s.sorted {
		for _, class := range q.all.list {
			if lacksNodes(class.reason) && !class.first().Grows {
				all = append(all, equal{first: class.first(), gangs: class.Len(), why: class.reason})
			}
		}
	}
	for _, w := range s.asked {
		if w.Asked.Checks == nil {
			all = append(all, equal{w, 1, w.reasonOfAsked(), true})
		}
	}
	slices.SortFunc(all, func(a, b equal) int { return cmp.Compare(a.first.Order, b.first.Order) })
	d := workload.Demand{Shapes: []workload.DemandedGangs{}}
	for i, e := range all {
		d.Gangs += e.gangs
		d.Pods += e.gangs * e.first.Workload.Pods()
		if i >= most {
			d.LeftOut += e.gangs
			continue
		}
		d.Shapes = append(d.Shapes, demanded(e.first, e.gangs, e.why, e.asked))
	}
	return d
}

// lacksNodes reports whether more nodes would remove the reason.
func lacksNodes(why *workload.Reason) bool {
	if why == nil {
		return false
	}
	switch why.Kind {
	case workload.ReasonFit, workload.ReasonTopology, workload.ReasonNoNodes:
		return true
	case workload.ReasonNeverFits:
		return why.Shortage != nil
	}
	return false
}

func demanded(w *Waiting, gangs int, why *workload.Reason, asked bool) workload.DemandedGangs {
	d := workload.DemandedGangs{
		ClusterQueue: w.queue.name, Priority: w.Workload.Priority, Gangs: gangs, Asked: asked, Since: w.Since.UTC(), Reason: why.Message,
	}
	for i := range w.Workload.PodSets {
		set := &w.Workload.PodSets[i]
		pods := workload.DemandedPods{
			Name: set.Name, Pods: set.Count, Requests: set.Template.Requests, NodeSelector: set.Template.NodeSelector,
			Affinity: set.Template.Affinity, Tolerations: set.Template.Tolerations, Topology: set.Topology,
		}
		if s := why.Shortage; s != nil && s.PodSet == set.Name {
			pods.Unplaced = s.Unplaced
		}
		d.PodSets = append(d.PodSets, pods)
	}
	return d
}
