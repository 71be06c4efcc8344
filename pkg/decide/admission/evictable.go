package admission

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// evictableGangs are the gangs of a queue that a decision has started or grown, reduced
// to those that tell whether a workload may evict any of them: the one of the lowest
// priority, and of each priority the one submitted last.
type evictableGangs struct {
	lowest         *Started
	last           map[int32]*Started // by priority
	protectedUntil time.Time          // when the protection of the first of them ends
}

// noteEvictable notes a gang that has started or grown, unless it was a candidate
// already.
func (d *decision) noteEvictable(g *Started) {
	until := g.protectedUntil()
	if !d.now.Before(until) {
		return
	}
	if d.effects.evictable == nil {
		d.effects.evictable = map[*queue]*evictableGangs{}
	}
	gangs := d.effects.evictable[g.queue]
	if gangs == nil {
		gangs = &evictableGangs{last: map[int32]*Started{}, protectedUntil: until}
		d.effects.evictable[g.queue] = gangs
	}
	if until.Before(gangs.protectedUntil) {
		gangs.protectedUntil = until
	}
	if gangs.lowest == nil || g.Workload.Priority < gangs.lowest.Workload.Priority {
		gangs.lowest = g
	}
	if known := gangs.last[g.Workload.Priority]; known == nil || known.Order < g.Order {
		gangs.last[g.Workload.Priority] = g
	}
}

// scheduleRetries has the blocked classes that may evict a gang of this decision
// reopened when the protection of that gang ends.
func (d *decision) scheduleRetries() {
	for from, gangs := range d.effects.evictable {
		for _, q := range d.state.sorted {
			if q.quota.Preemption == nil || !q.quota.SameTree(from.quota) {
				continue
			}
			for class := range q.blocked {
				if gangs.mayBeEvictedFor(class.first()) {
					class.retryBy(gangs.protectedUntil)
				}
			}
		}
	}
}

// noteHeld has the blocked classes that may take back the quota of a workload that has asked
// now tried again, when the decision is carried out.
func (d *decision) noteHeld(o *Waiting) {
	for _, q := range d.state.sorted {
		if q.quota.Preemption == nil || !q.quota.SameTree(o.queue.quota) {
			continue
		}
		for class := range q.blocked {
			if len(class.overQuota) > 0 && class.first().mayEvictByAnyPolicy(o.asStarted()) {
				class.retryBy(d.now.Add(leastRun))
			}
		}
	}
}

// asStarted is a workload that waits for nodes or checks, as the rules of eviction see it.
func (w *Waiting) asStarted() *Started {
	return &Started{Workload: w.Workload, Order: w.Order, queue: w.queue}
}

// mayBeEvictedFor reports whether the workload may evict one of the gangs, quota aside.
func (e *evictableGangs) mayBeEvictedFor(w *Waiting) bool {
	last := e.last[w.Workload.Priority]
	return w.mayEvictByAnyPolicy(e.lowest) || last != nil && w.mayEvictByAnyPolicy(last)
}

// mayEvictByAnyPolicy reports whether one of the policies lets the workload evict the
// gang, quota aside.
func (w *Waiting) mayEvictByAnyPolicy(g *Started) bool {
	if w.queue == g.queue {
		return w.mayEvict(g, withinQueue)
	}
	borrow := w.queue.quota.Preemption.BorrowWithinCohort
	return w.mayEvict(g, reclaimed) || borrow != nil && borrow.Policy == quota.LowerPriority && w.mayEvict(g, borrowWithin)
}
