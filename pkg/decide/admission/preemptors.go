package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// reopenPreemptors reopens the classes that tried preemption in vain and for which the
// decision has since changed something. It reports whether there are any.
func (d *decision) reopenPreemptors() (opened bool) {
	e := &d.effects
	evicted := d.plan.Evictions[e.evictionsSeen:]
	if len(evicted) == 0 && !e.reservationsReplanned && !e.usageGrew {
		return false
	}
	for _, class := range d.helped(evicted, e.reservationsReplanned) {
		d.state.reopen(class)
		opened = true
	}
	e.evictionsSeen, e.reservationsReplanned, e.usageGrew = len(d.plan.Evictions), false, false
	return opened
}

// helped returns the blocked classes that tried preemption in vain, and for which that may be
// different now: all of them, or those for which the evictions are not hopeless.
func (d *decision) helped(evicted []Eviction, all bool) (list []*equivalenceClass) {
	s := d.state
	for _, q := range s.sorted {
		first := firstRanks{all: !all, none: all} // all that is evicted was among the candidates of these
		for i := range evicted {
			g := s.started[evicted[i].Workload]
			if evicted[i].Reason.Kind != workload.ReasonPreempted || !q.quota.SameTree(g.queue.quota) {
				first = firstRanks{none: true}
				break
			}
			first = first.fewer(q.mayEvict(g))
		}
		list = append(list, q.blocked.triedBefore(s.departed)...)
		list = append(list, q.blocked.triedFrom(first)...)
	}
	return slices.DeleteFunc(append(list, d.exempt(evicted)...), func(class *equivalenceClass) bool {
		return !class.triedPreemption || !all && d.isHopeless(class, evicted)
	})
}

// exempt returns the blocked classes whose first gang may not evict one of the evicted gangs,
// whatever the policies let it evict: it is a part of that gang, or one was evicted for the other
// before.
func (d *decision) exempt(evicted []Eviction) (list []*equivalenceClass) {
	s := d.state
	note := func(id workload.ID) {
		w := s.waiting.Get(id)
		if w != nil && w.class != nil && w.class.atOpen < 0 && w.class.first() == w {
			list = append(list, w.class)
		}
	}
	for i := range evicted {
		note(evicted[i].Workload)
		for id := range s.evictedFor.victims[evicted[i].Workload] {
			note(id)
		}
		for id := range s.evictedFor.preemptors[evicted[i].Workload] {
			note(id)
		}
	}
	return list
}

// isHopeless reports whether these evictions cannot help the first gang of the class: it had
// no places with all of its candidates gone, and the evicted gangs were among them.
// Placements and shares of a decision do not help it either.
func (d *decision) isHopeless(class *equivalenceClass, evicted []Eviction) bool {
	s, w := d.state, class.first()
	if class.hopelessAt != s.departed {
		return false
	}
	for _, e := range evicted {
		g := s.started[e.Workload]
		byPolicy := e.Reason.Kind == workload.ReasonPreempted // a drain asks no policy
		evictedBefore := s.evictedFor.between(w.Workload.ID, e.Workload)
		if !byPolicy || evictedBefore || e.Workload == w.Workload.ID || !w.queue.quota.SameTree(g.queue.quota) || !w.mayEvictByAnyPolicy(g) {
			return false
		}
	}
	return true
}
