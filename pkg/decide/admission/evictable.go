package admission

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// evictableGangs are the gangs of a queue that a decision has started or grown, reduced to the
// one that each workload may evict that may evict any of them: of those of the lowest priority
// the one submitted last.
type evictableGangs struct {
	easiest        *Started
	protectedUntil time.Time // when the protection of the first of them ends
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
		gangs = &evictableGangs{easiest: g, protectedUntil: until}
		d.effects.evictable[g.queue] = gangs
	}
	if until.Before(gangs.protectedUntil) {
		gangs.protectedUntil = until
	}
	if by := cmp.Compare(g.Workload.Priority, gangs.easiest.Workload.Priority); by < 0 || by == 0 && g.Order > gangs.easiest.Order {
		gangs.easiest = g
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
			q.blocked.retryBy(q.mayEvict(gangs.easiest), gangs.protectedUntil)
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
		for _, class := range q.blocked.among(q.mayEvict(o.asStarted()), moreQuota) {
			class.retryBy(d.now.Add(leastRun))
		}
	}
}

// asStarted is a workload that waits for nodes or checks, as the rules of eviction see it.
func (w *Waiting) asStarted() *Started {
	return &Started{Workload: w.Workload, Order: w.Order, queue: w.queue}
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
