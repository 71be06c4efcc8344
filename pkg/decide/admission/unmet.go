package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Unmet returns what waiting gangs lack that are within quota and have no places, with at
// most that many shapes, by the flavors by which they would get it. lacked is for how long a
// gang has lacked it. The work is in proportion to the number of different gangs.
func (s *State) Unmet(most int, lacked func(workload.ID) time.Duration) workload.Demand {
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
		flavors := s.demandedFlavors(e.first, lacked)
		shape := demanded(e.first, s.tree.Effective(e.first.Workload.PodSets, flavors), flavors, e.why)
		shape.Gangs, shape.Asked = e.gangs, e.asked
		d.Shapes = append(d.Shapes, shape)
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

// demandedFlavors are those by which nodes would start a gang: of a request the requested
// ones, else the first ones of its queue that are within quota. Where the queue tries the next
// ones after some time without nodes, they take turns.
func (s *State) demandedFlavors(w *Waiting, lacked func(workload.ID) time.Duration) []workload.PodSetFlavors {
	if w.Asked != nil {
		return w.Asked.Flavors
	}
	within := slices.DeleteFunc(w.queue.quota.Assess(s.optionsOf(w.queue, w.signature).assignments), func(a quota.Assess) bool { return a.Mode != quota.Within })
	if len(within) == 0 {
		return nil
	}
	turn := 0
	if _, each := w.queue.quota.TriesNextFlavor(); each > 0 && lacked != nil {
		turn = int(lacked(w.Workload.ID)/each) % len(within)
	}
	return within[turn].Flavors
}

func demanded(w *Waiting, sets []workload.PodSet, flavors []workload.PodSetFlavors, why *workload.Reason) workload.DemandedGangs {
	d := workload.DemandedGangs{ClusterQueue: w.queue.name, Priority: w.Workload.Priority, Since: w.Since.UTC(), Reason: why.Message}
	for i := range sets {
		set := &sets[i]
		pods := workload.DemandedPods{
			Name: set.Name, Pods: set.Count, Requests: set.Template.Requests, NodeSelector: set.Template.NodeSelector,
			Affinity: set.Template.Affinity, Tolerations: set.Template.Tolerations, Topology: set.Topology,
		}
		for _, f := range flavors {
			if f.PodSet == set.Name {
				pods.Flavors = f.Flavors
			}
		}
		if s := why.Shortage; s != nil && s.PodSet == set.Name {
			pods.Unplaced = s.Unplaced
		}
		d.PodSets = append(d.PodSets, pods)
	}
	return d
}
