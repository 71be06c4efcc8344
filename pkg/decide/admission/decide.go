package admission

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Decide returns what to start and what to evict, until nothing more can be done, and
// applies that to the state. It tries only classes for which something may have
// changed since the last decision. now must not go back.
func Decide(s *State, now time.Time) Plan {
	d := &decision{state: s, now: now}
	d.decide()
	return d.plan
}

// decide makes the decision.
func (d *decision) decide() {
	s, now := d.state, d.now
	s.tree.Advance(now)
	if isDue(s.repeatAt, now) {
		s.repeatAt = time.Time{}
	}
	d.orderByUse()
	d.endBudgetStops()
	d.recheckNamespaces()
	d.recheckRanges()
	d.recheckDefaults()
	d.endBackoffs()
	d.drain()
	d.drainClusters()
	d.drainReserved()
	d.settleNominations()
	d.settleAsked()
	d.promoteImpatient()
	d.requeue()
	d.restoreNominations()
	for again := true; again; again = d.refreshBlockers() || d.askDeferred() {
		for class := d.nextClass(); class != nil; class = d.nextClass() {
			d.tryFirst(class)
		}
	}
	d.scheduleRetries()
	d.reportNew()
	d.reportReservations()
	s.events.clear()
	d.plan.NextAt = d.nextAt()
	s.tree.Settle()
	s.decidedAt, s.nextAt = now, d.plan.NextAt
}

// Pending reports whether a decision at this time could differ from the last
// one.
func (s *State) Pending(now time.Time) bool {
	return len(s.fresh) > 0 || s.ReportsLeft() || s.waiting.Len() > 0 && (s.events.any() || s.due(now) || s.offersMayChange()) || s.mustDrain(now)
}

// mustDrain reports whether gangs of a drained queue or cluster, or on reserved nodes, have
// to be evicted.
func (s *State) mustDrain(now time.Time) bool {
	return s.mustDrainClusters() || s.mustDrainReserved(now) || slices.ContainsFunc(s.sorted, func(q *queue) bool {
		return q.quota.StopPolicy == quota.HoldAndDrain && q.hasToDrain()
	})
}

// hasToDrain reports whether a gang of the queue runs that can be evicted.
func (q *queue) hasToDrain() bool {
	for _, g := range q.started {
		if !g.Terminating && !g.Frozen {
			return true
		}
	}
	return false
}

// refreshBlockers recomputes head reservations and reopens the classes whose refusal
// may be stale; it reports whether it reopened any.
func (d *decision) refreshBlockers() bool {
	remade := d.reserveHeads(nil)
	return d.reopenPreemptors() || remade
}

// decision is the work of one Decide.
type decision struct {
	state *State
	now   time.Time
	plan  Plan
	// effects are what it did that may change its earlier answers.
	effects effects
	// trying is about the gang that is tried.
	trying trying
	// covered are the nodes of reservations, by cluster, as far as they were looked up.
	covered map[coveredKey][]string
	// kept is what the last reservation asked about keeps of what is free.
	kept keptFree
	// placedReservations are, by cluster, those that others are made around.
	placedReservations map[string]*placedReservations
	// reoffered are the flavored signatures to which changed nodes may offer something else.
	reoffered map[*flavoredSignature]bool
	// reserving is the work on reservations so far, see mostReserving.
	reserving int
	// searching are the queues that have searched lately; nil before the first search.
	searching map[*queue]bool
	// keptParts is what is kept for gangs with requests, as far as it is found.
	keptParts []*keptPart
	keepers   keepers
	// keptWhy is the last reason of a workload that only kept places keep back; nodes help it.
	keptWhy *workload.Reason
	// deferred are of gangs that leave their turn to be shown to others.
	deferred []deferredAsk
}

// endBackoffs puts workloads whose back-off is over into their classes.
func (d *decision) endBackoffs() {
	s := d.state
	over := 0
	for over < len(s.backingOff) && !d.now.Before(s.backingOff[over].NotBefore) {
		s.addToClass(s.backingOff[over])
		over++
	}
	s.backingOff = slices.Delete(s.backingOff, 0, over)
}

// drain evicts the gangs of queues with the stop policy HoldAndDrain.
func (d *decision) drain() {
	for _, q := range d.state.sorted {
		if q.quota.StopPolicy != quota.HoldAndDrain {
			continue
		}
		for _, g := range q.inOrder() {
			if !g.Terminating && !g.Frozen {
				d.evict(g, workload.Reason{Kind: workload.ReasonDrained, Message: fmt.Sprintf("queue %q is drained (stopPolicy %s)", q.name, quota.HoldAndDrain)})
			}
		}
	}
}

// promoteImpatient moves workloads whose patience is over to the front.
func (d *decision) promoteImpatient() {
	for _, q := range d.state.sorted {
		n := 0
		for ; n < len(q.patient) && !d.now.Before(q.patient[n].patienceEnd()); n++ {
			w := q.patient[n]
			if w.class == nil || !d.state.waiting.Has(w) {
				continue // it has left, or is tracked when it returns
			}
			d.state.removeFromClass(w)
			w.impatient = true
			d.state.addToClass(w)
		}
		q.patient = slices.Delete(q.patient, 0, n)
	}
}

// restoreNominations first tries workloads that were nominated in an earlier term. One
// that is not nominated again gets another reason, because its last one names the
// nomination. While no cluster reports, as at the beginning of a term, they keep it and are tried
// later: no other gang can start meanwhile.
func (d *decision) restoreNominations() {
	s := d.state
	var nominated []*Waiting
	s.fresh, s.unsettled = append(s.fresh, slices.DeleteFunc(s.unsettled, func(w *Waiting) bool { return !s.waiting.Has(w) })...), nil
	for _, w := range s.fresh {
		switch {
		case !w.Nominated || w.nomination(s) != nil:
		case w.class != nil && s.noneReports() && slices.ContainsFunc(s.candidates(w), func(c string) bool { return s.mayReturnTo(w, c) }):
			s.unsettled = append(s.unsettled, w)
		case w.class != nil:
			nominated = append(nominated, w)
		default: // its queue is held
			w.Nominated, w.Reported = false, false
		}
	}
	slices.SortFunc(nominated, before)
	for _, w := range nominated {
		if why := d.start(w); why != nil {
			w.Nominated, w.Reported = why.Kind == workload.ReasonUnknown || w.class.cut, false // undecided: it is looked at again
		}
	}
}

// mayReturnTo reports whether a cluster may take a workload, by one of the flavors of its queue, once
// it reports.
func (s *State) mayReturnTo(w *Waiting, cluster string) bool {
	return s.excluded(w, cluster) == "" && (!s.tree.ChoosesFlavors() || slices.ContainsFunc(s.optionsOf(w.queue, w.signature).assignments, func(a quota.Assignment) bool {
		return s.tree.NotOffered(cluster, a.Flavors) == ""
	}))
}

// tryFirst starts the first gang of the class, or blocks the class.
func (d *decision) tryFirst(class *equivalenceClass) {
	w := class.first()
	if why := d.start(w); why != nil {
		if d.isDeferred(w) { // whether it gets it is seen at the end
			d.state.block(class, cmp.Or(class.reason, why))
			return
		}
		why = d.wordNever(w, why)
		last := class.reason
		changed := last == nil || last.Message != why.Message
		d.state.block(class, why)
		d.noteKept(class.queue)
		if last == nil || (len(last.Kinds) > 0) != (len(why.Kinds) > 0) {
			d.reportOthers(class, last, why)
		}
		if changed && w.Reported && !d.state.isUnsettled(w) {
			d.wait(w, why)
		}
	}
}

// reportReservations adds the reasons of heads whose reservation is new.
func (d *decision) reportReservations() {
	for _, r := range d.state.reservations {
		if r.cluster != "" && !r.reported && r.head.Reported {
			d.wait(r.head, d.state.reason(r.head))
		}
		r.reported = true
	}
}
