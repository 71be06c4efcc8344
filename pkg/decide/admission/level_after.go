package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// assess judges flavors against the present usage, in the order in which Kueue would try them.
// Where the queue has that order depend on it, evictions are looked for in the flavors that need
// them: as in Kueue the level at which the workload would borrow there is the one after them.
func (d *decision) assess(w *Waiting, o *flavorOptions) []quota.Assess {
	assessed := w.queue.quota.Assess(o.assignments)
	if !w.mayDependOnEvictions(assessed) {
		return assessed
	}
	for i := range assessed {
		a := &assessed[i]
		if a.Mode != quota.Preempting || d.state.flavorConflict(w, *a) != nil { // it is not tried
			continue
		}
		cutBefore := d.state.searched.Cut
		n, list := d.victimsFor(w, *a, o.flavoredFor(*a))
		if n != nil {
			a.Level, a.Own = d.levelAfter(n, list), takesOwn(list)
		}
		if d.state.searched.Cut == cutBefore {
			if d.trying.rooms == nil {
				d.trying.rooms = map[*quota.Assignment]foundRoom{}
			}
			d.trying.rooms[a.Assignment] = foundRoom{n, list}
		}
	}
	w.queue.quota.SortAgain(assessed, o.assignments)
	return assessed
}

// mayDependOnEvictions reports whether the order of the flavors may be another one with what is
// evicted in them.
func (w *Waiting) mayDependOnEvictions(assessed []quota.Assess) bool {
	evicting, borrowing := 0, false
	for _, a := range assessed {
		if a.Mode == quota.Preempting {
			evicting++
			borrowing = borrowing || a.Level > 0
		}
	}
	q := w.queue.quota
	return len(assessed) > 1 && (evicting > 0 && q.OrderDependsOnEvictions() || evicting > 1 && borrowing)
}

// takesOwn reports whether one of the victims is of the workload's own queue.
func takesOwn(list []candidate) bool {
	return slices.ContainsFunc(list, func(c candidate) bool { return c.policy == withinQueue })
}

// levelAfter returns the level at which a workload borrows when its victims, and the gangs that
// are being torn down, are gone.
func (d *decision) levelAfter(n *nomination, list []candidate) int {
	before := d.state.tree.Begin()
	defer d.state.tree.Rollback(before)
	for _, g := range n.awaits {
		g.queue.quota.Release(g.charges)
	}
	for _, g := range list {
		g.queue.quota.Release(g.charges)
	}
	return n.waiting.queue.quota.BorrowingLevel(n.assess.Charges)
}
