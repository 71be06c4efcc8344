package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// Plan is what shall happen. The state has it carried out already; whoever
// cannot carry it out has to make the state anew.
type Plan struct {
	Admissions []Admission
	// Growths are started gangs that get more places: all that each has now.
	Growths   []Admission
	Evictions []Eviction
	// Waits are the reasons of those that were looked at and do not start. The
	// waiting of a queue that are alike share one verdict, and only the first of
	// them is named; State.Reason has the reason of each.
	Waits []Wait
	// NextAt is the earliest time at which a decision may differ although nothing
	// happens; zero for none.
	NextAt time.Time
}

// Admission starts a workload with a node for each of its pods.
type Admission struct {
	Workload   workload.ID
	Cluster    string
	Placements []workload.Placement
	Flavors    []workload.PodSetFlavors
}

// Eviction stops a started workload.
type Eviction struct {
	Workload workload.ID
	Reason   workload.Reason // of the kind Preempted or Drained
}

// Wait says why a workload does not start now.
type Wait struct {
	Workload workload.ID
	Reason   workload.Reason
}

// Decide returns what to start and whom to evict, until nothing more can be
// done, and carries that out in the state. It looks only at those for whom
// something may have changed since the last decision. now is the time; it must
// not go back.
func Decide(s *State, now time.Time) Plan {
	d := &decision{state: s, now: now}
	s.tree.Advance(now)
	d.ripen()
	d.drain()
	d.settleClaims()
	d.age()
	d.wake()
	d.reclaim()
	for again := true; again; again = d.unsettled() {
		for b := d.next(); b != nil; b = d.next() {
			d.try(b)
		}
	}
	d.noteVictims()
	d.tellFresh()
	d.tellHolds()
	s.grown, s.newCluster, s.remeasured, s.fresh = false, false, false, nil
	clear(s.freed)
	d.plan.NextAt = d.nextAt()
	s.decided, s.nextAt = now, d.plan.NextAt
	return d.plan
}

// unsettled brings up to date what those were refused by who have been looked at.
// It reports whether some are to be looked at again.
func (d *decision) unsettled() bool {
	kept := d.reserveHeads(nil)
	return d.reconsider() || kept
}

// decision is the work of one Decide.
type decision struct {
	state *State
	now   time.Time
	plan  Plan
	// begun are the gangs that have started or grown, by queue.
	begun map[*queue]*begun
	// weighed is how many evictions those know of who could not have any; since
	// then have changed, moved: what is held for heads, or the size of a gang;
	// shared: shares.
	weighed       int
	moved, shared bool
}

// ripen lets the waiting whose back-off is over take their places.
func (d *decision) ripen() {
	s := d.state
	ripe := 0
	for ripe < len(s.later) && !d.now.Before(s.later[ripe].NotBefore) {
		s.toBucket(s.later[ripe])
		ripe++
	}
	s.later = slices.Delete(s.later, 0, ripe)
}

// drain evicts what has places by way of a queue that is to be empty.
func (d *decision) drain() {
	for _, q := range d.state.sorted {
		if q.quota.StopPolicy != quota.HoldAndDrain {
			continue
		}
		for _, g := range q.inOrder() {
			if !g.Going && !g.Kept {
				d.evict(g, workload.Reason{Kind: workload.ReasonDrained, Message: fmt.Sprintf("queue %q is drained (stopPolicy %s)", q.name, quota.HoldAndDrain)})
			}
		}
	}
}

func (d *decision) evict(g *Started, why workload.Reason) {
	g.Going = true
	d.plan.Evictions = append(d.plan.Evictions, Eviction{g.Workload.ID, why})
}

// wake opens the buckets for which something may have changed.
func (d *decision) wake() {
	s := d.state
	for _, cluster := range s.clusters {
		for _, key := range s.fleets[cluster].Wake() {
			if v := s.variants[key]; v != nil {
				s.doubt(v, cluster)
			}
		}
	}
	happened := s.grown || s.newCluster || len(s.freed) > 0 || s.due(d.now)
	if !happened && !s.remeasured {
		return
	}
	for _, h := range s.holds {
		h.stale = h.stale || happened
	}
	for _, q := range s.sorted {
		freed := s.freed[q.quota.Root()]
		for b := range q.blocked {
			due := !b.retryAt.IsZero() && !d.now.Before(b.retryAt)
			if s.newCluster || due || happened && b.behind != nil || b.preempts && (s.grown || s.remeasured || freed) || freed && q.eased(b) {
				s.reopen(b)
			}
		}
	}
}

// doubt forgets that a variant has no places on a cluster.
func (s *State) doubt(v *variant, cluster string) {
	delete(v.verdicts, cluster)
	for b := range v.waiters {
		s.reopen(b) // heaps order by heads, so the order of reopening does not matter
	}
}

// eased reports whether one of the bucket's assignments may be within quota now.
func (q *queue) eased(b *bucket) bool {
	for _, c := range b.overs {
		if q.quota.Fits([]quota.Charge{c}) {
			return true
		}
	}
	return false
}

// reclaim looks first at those that gangs were evicted for in an earlier term.
func (d *decision) reclaim() {
	var claiming []*Waiting
	for _, w := range d.state.fresh {
		if w.Claiming && w.bucket != nil {
			claiming = append(claiming, w)
		}
	}
	slices.SortFunc(claiming, before)
	for _, w := range claiming {
		d.start(w)
	}
}

// try starts the head of the bucket, or blocks the bucket.
func (d *decision) try(b *bucket) {
	w := b.head()
	if why := d.start(w); why != nil {
		fresh := b.reason == nil || b.reason.Message != why.Message
		d.state.block(b, why)
		if fresh && w.Told {
			d.wait(w, why)
		}
	}
}

func (d *decision) wait(w *Waiting, why *workload.Reason) {
	d.plan.Waits = append(d.plan.Waits, Wait{w.Workload.ID, *why})
}

// tellFresh gives those that came since the last decision their reasons.
func (d *decision) tellFresh() {
	s := d.state
	var untold []*Waiting // a million may be fresh when a term begins, and have been told
	for _, w := range s.fresh {
		if !w.Told && s.waiting.Has(w) {
			untold = append(untold, w)
		}
	}
	slices.SortStableFunc(untold, before)
	for _, w := range untold {
		if w.claimed(s) == nil { // whoever has a claim was told when it was made
			d.wait(w, s.reason(w))
		}
		w.Told = true
	}
}

// tellHolds tells heads what is held for them.
func (d *decision) tellHolds() {
	for _, h := range d.state.holds {
		if h.cluster != "" && !h.told && h.head.Told {
			d.wait(h.head, d.state.reason(h.head))
		}
		h.told = true
	}
}

// nextAt is the earliest time that somebody waits for.
func (d *decision) nextAt() time.Time {
	var next time.Time
	note := func(t time.Time) {
		if !t.IsZero() && t.After(d.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if len(d.state.later) > 0 {
		note(d.state.later[0].NotBefore)
	}
	for _, q := range d.state.sorted {
		for b := range q.blocked {
			note(b.retryAt)
		}
		if q.backfills() && q.all.Len() > 0 {
			note(q.all.list[0].head().patient())
		}
		if len(q.young) > 0 {
			note(q.young[0].patient())
		}
	}
	for _, h := range d.state.holds {
		if !h.start.IsZero() {
			note(h.start.Add(time.Second)) // somebody is over time
		}
	}
	return next
}
