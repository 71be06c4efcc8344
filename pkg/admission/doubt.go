package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// A start takes places and quota, and makes somebody to evict. Here is noted for
// whom of those that have been looked at already that makes a difference.

// noteTaken has the holds on a cluster made anew that did not keep the workload,
// which takes places there now, from theirs.
func (d *decision) noteTaken(w *Waiting, cluster string, places []workload.Placement) {
	var nodes map[string]bool
	for _, h := range d.state.holds {
		if h.stale || h.cluster != cluster || h.head == w || h.binds(w) {
			continue
		}
		if nodes == nil {
			nodes = nodesIn(places)
		}
		h.stale = slices.ContainsFunc(h.places, func(p workload.Placement) bool { return nodes[p.Node] })
	}
}

func nodesIn(places []workload.Placement) map[string]bool {
	nodes := make(map[string]bool, len(places))
	for _, p := range places {
		nodes[p.Node] = true
	}
	return nodes
}

// noteMoved has the holds made anew whose heads come after that of one which is
// in other places now.
func (d *decision) noteMoved(h *hold) {
	for _, other := range d.state.holds {
		if other.cluster == h.cluster && h.binds(other.head) {
			other.stale = true
		}
	}
}

// noteShort tells the holds of a gang that was admitted, or has grown, and will
// have ended when their heads start: what it takes comes back in time.
func (d *decision) noteShort(g *Started, runTime time.Duration) {
	for _, h := range d.state.holds {
		if h.cluster == g.Cluster && h.over(d.now, runTime) && !slices.Contains(h.after, g) {
			h.after = append(h.after, g)
		}
	}
}

// noteShare notes that a queue uses more: if it borrows, or sharing is fair, others
// may take back now what they could not.
func (d *decision) noteShare(a quota.Assess) {
	d.shared = d.shared || a.Borrows || d.state.fair()
}

// begun is what matters of the gangs of a queue that a decision has started or had
// grow: who may evict any of them may evict the one of the lowest priority, or one of
// its own priority that was submitted last.
type begun struct {
	lowest *Started
	last   map[int32]*Started // by priority
	until  time.Time          // when the first of them is not protected any more
}

// noteVictim notes a gang that has started or grown, unless it was to be evicted
// before.
func (d *decision) noteVictim(g *Started) {
	until := g.protectedUntil()
	if !d.now.Before(until) {
		return
	}
	if d.begun == nil {
		d.begun = map[*queue]*begun{}
	}
	of := d.begun[g.queue]
	if of == nil {
		of = &begun{last: map[int32]*Started{}, until: until}
		d.begun[g.queue] = of
	}
	if until.Before(of.until) {
		of.until = until
	}
	if of.lowest == nil || g.Workload.Priority < of.lowest.Workload.Priority {
		of.lowest = g
	}
	if known := of.last[g.Workload.Priority]; known == nil || known.Order < g.Order {
		of.last[g.Workload.Priority] = g
	}
}

// noteVictims has those looked at again who may evict a gang that has started
// since they were refused, once it is not protected any more.
func (d *decision) noteVictims() {
	for from, of := range d.begun {
		for _, q := range d.state.sorted {
			if q.quota.Preemption == nil || !q.quota.SameTree(from.quota) {
				continue
			}
			for b := range q.blocked {
				if (b.retryAt.IsZero() || of.until.Before(b.retryAt)) && of.has(b.head()) {
					b.retryAt = of.until
				}
			}
		}
	}
}

// has reports whether the workload may evict one of them, the state of quotas aside.
func (b *begun) has(w *Waiting) bool {
	last := b.last[w.Workload.Priority]
	return w.mayEvictBySome(b.lowest) || last != nil && w.mayEvictBySome(last)
}

// mayEvictBySome reports whether one of the policies lets the workload evict the
// gang, the state of quotas aside.
func (w *Waiting) mayEvictBySome(g *Started) bool {
	if w.queue == g.queue {
		return w.mayEvict(g, withinQueue)
	}
	borrow := w.queue.quota.Preemption.BorrowWithinCohort
	return w.mayEvict(g, reclaimed) || borrow != nil && borrow.Policy == quota.LowerPriority && w.mayEvict(g, borrowWithin)
}

// hopeful is of buckets that are not hopeless.
const hopeful = -1

// reconsider has those looked at again who could not have gangs evicted, when
// more have been evicted since, who count as gone, or when shares or what is held
// for heads have changed. It reports whether there are any.
func (d *decision) reconsider() (opened bool) {
	evicted := d.plan.Evictions[d.weighed:]
	if len(evicted) == 0 && !d.moved && !d.shared {
		return false
	}
	for _, q := range d.state.sorted {
		for b := range q.blocked {
			if b.preempts && (d.moved || !d.hopeless(b, evicted)) {
				d.state.reopen(b)
				opened = true
			}
		}
	}
	d.weighed, d.moved, d.shared = len(d.plan.Evictions), false, false
	return opened
}

// hopeless reports whether the bucket's head has no places although these have
// been evicted: it had none with all gone whom it may evict, and they are among
// those. What a decision takes makes it no better, nor do shares.
func (d *decision) hopeless(b *bucket, evicted []Eviction) bool {
	s, w := d.state, b.head()
	if b.hopeless != s.left {
		return false
	}
	for _, e := range evicted {
		g := s.started[e.Workload]
		drained := e.Reason.Kind != workload.ReasonPreempted // of whoever has places
		again := s.fought[w.Workload.ID][e.Workload] || s.fought[e.Workload][w.Workload.ID]
		if drained || again || e.Workload == w.Workload.ID || !w.queue.quota.SameTree(g.queue.quota) || !w.mayEvictBySome(g) {
			return false
		}
	}
	return true
}

// sameAs reports whether a hold says the same as the one in whose place it was
// made.
func (h *hold) sameAs(old *hold) bool {
	return h.cluster == old.cluster && h.start.Equal(old.start) && slices.Equal(h.places, old.places) &&
		slices.EqualFunc(h.after, old.after, func(a, b *Started) bool { return a.Workload.ID == b.Workload.ID })
}
