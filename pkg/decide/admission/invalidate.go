package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// A refused class stays blocked, and a head reservation stays as it was made, until
// an event may have changed that answer. This file has all such events:
//
//	event                             what is reopened                  why
//
//	between two decisions, by requeue:
//	a node has more room              classes whose pod sets may fit    their verdict is stale
//	                                  there (the fleet's requeue hint)
//	the same, or a gang released      classes that tried preemption     fewer victims may do
//	a cluster is listed, or has its   all classes, and who was held by  no verdict covers it
//	first node                        namespaces or LimitRanges
//	a cluster becomes silent, or      all classes                       others may take them, or
//	reports again, or serves other                                      it may
//	kinds of objects that wait
//	a queue selects another namespace all classes of queues that        other clusters count
//	                                  select, and who was held by that
//	a LimitRange of a namespace       classes that one keeps out of a   other clusters count
//	                                  cluster, and who was held by that
//	a node has another shape          classes that never fitted and     their reason is stale
//	                                  now may, and the reverse
//	quota came back in a tree, or     classes of the tree that may be   their refusal is stale
//	a strict queue lost a member      within quota, or tried preemption
//	the base of shares changed        classes that tried preemption     shares justify victims
//	a gang shows itself to an         classes of queues whose gangs     it is their turn
//	autoscaler no longer              show themselves
//	a gang starts on nodes that it    classes from which places are     what is left of them is
//	has asked for                     kept                              free
//	retryAt of a class                that class                        protection of a victim
//	                                                                    or a search budget
//	repeatAt of the state             all reservations, and the         a search for one was put off
//	                                  nominations whose victims went
//	a gang gets another priority      classes that may evict it         it is a new candidate
//	any of these but the base of      all reservations, and classes     the head may start
//	shares, or NextAt                 that one keeps back, or one       sooner, or elsewhere
//	(a LimitRange only where it       of nodes (or that one of nodes
//	keeps a gang out, or did)         is for, until it begins)
//
//	within a decision:
//	a gang took nodes of a            that reservation                  its head lost places
//	reservation that spares it
//	a reservation has other places    those of later heads there;       they were made around it
//	                                  classes that tried preemption
//	a reservation ended or was        the classes that it kept back     they may start now
//	remade
//	a gang was evicted                classes that tried preemption,    evicted gangs count as
//	                                  unless hopeless                   gone
//	a queue borrows more, or uses     the same                          others may reclaim
//	more under fair sharing
//	quota is kept for another head    the same, and classes from which  it is another amount
//	                                  quota is kept
//	a gang started or grew            classes that may evict it, when   it is a new candidate
//	                                  its protection ends
//	a gang asked for nodes, or was    classes over quota that may      it may give up its quota
//	put to its checks                 evict it, a second later
//	quota was taken back              classes of the tree that may be  what is left over is free
//	                                  within quota, or tried
//	                                  preemption; of queues whose
//	                                  gangs show themselves
//	a class has a new first gang      the class, where its queue        candidates, and what is
//	                                  preempts or it spares             kept for others, depend
//	                                  (fixOrder)                        on that gang

// events are what has happened to a state since its last decision.
type events struct {
	capacityGrew     bool            // a node has more free
	clusterAdded     bool            // a cluster has listed its nodes, or has its first node
	clustersChanged  bool            // a cluster has become silent, or reports again
	shareBaseChanged bool            // the amounts that shares are fractions of
	quotaFreed       map[string]bool // by root of the tree
	reshaped         []NodeKey       // nodes that offer something else when empty
	provisioned      bool            // nodes have come that a workload asked for
	shownEnded       bool            // a gang shows itself to an autoscaler no longer
	keptEnded        bool            // nothing is kept any more for a gang that has asked for nodes
	namespaces       bool            // queues may select other namespaces
	defaults         bool            // containers of a namespace ask for something else by default
	ranges           rangesChanged   // LimitRanges may allow other pods
}

// rangesChanged are the namespaces of which LimitRanges may allow other pods.
type rangesChanged struct {
	all   bool // of which clusters count has changed
	names map[string]bool
	// matter: a gang waits that one keeps out of a cluster, or did; see recheckRanges.
	matter bool
}

func (r *rangesChanged) any() bool                 { return r.all || len(r.names) > 0 }
func (r *rangesChanged) has(namespace string) bool { return r.all || r.names[namespace] }

func (e *events) any() bool {
	return e.refreshReservations() || e.shareBaseChanged || e.provisioned || e.shownEnded || e.keptEnded || e.defaults || e.ranges.any()
}

// refreshReservations reports whether a head may now start sooner than reserved.
func (e *events) refreshReservations() bool {
	return e.capacityGrew || e.clusterAdded || e.clustersChanged || e.namespaces || e.ranges.matter || len(e.quotaFreed) > 0
}

func (e *events) clear() {
	e.capacityGrew, e.clusterAdded, e.clustersChanged, e.shareBaseChanged = false, false, false, false
	e.provisioned, e.shownEnded, e.keptEnded, e.namespaces, e.defaults, e.ranges, e.reshaped = false, false, false, false, false, rangesChanged{}, nil
	clear(e.quotaFreed)
}

// noteCapacity notes that a node may have more free.
func (s *State) noteCapacity(grew bool) { s.events.capacityGrew = s.events.capacityGrew || grew }

// noteQuotaFreed notes that gangs of the queue's tree may be within quota now, or that
// the queue may have a new head.
func (s *State) noteQuotaFreed(q *queue) { s.events.quotaFreed[q.quota.Root()] = true }

// effects are what a decision did itself that may change answers it has given.
type effects struct {
	evictionsSeen         int  // evictions of the plan that classes were reopened for
	reservationsReplanned bool // a reservation, or the size of a gang, changed
	usageGrew             bool // a queue uses more that others may reclaim
	evictable             map[*queue]*evictableGangs
}

// requeue reopens the classes for which something may have changed since the last
// decision.
func (d *decision) requeue() {
	s := d.state
	for _, cluster := range s.clusters {
		for _, key := range s.fleets[cluster].Requeued() {
			if flavored := s.flavored[key]; flavored != nil {
				s.invalidateVerdict(flavored, cluster)
			}
		}
	}
	d.recheckOffers()
	d.recheckBehind()
	happened := s.events.refreshReservations() || s.due(d.now)
	if !happened && !s.events.shareBaseChanged && !s.events.shownEnded && !s.events.keptEnded {
		return
	}
	for _, r := range s.reservations {
		r.stale = r.stale || happened
	}
	for _, q := range s.sorted {
		for _, class := range q.blocked.concerned(s.events.concern(q, happened), d.now) {
			if d.mayHaveChanged(class, happened) {
				s.reopen(class)
			}
		}
	}
}

// concern returns which classes of a queue the events may concern: at least those of which
// mayHaveChanged is true, and that are not due. happened is whether reservations are stale.
func (e *events) concern(q *queue, happened bool) (by concerns) {
	freed := e.quotaFreed[q.quota.Root()]
	if e.clusterAdded || e.clustersChanged || e.namespaces && q.quota.Selector() != nil || e.shownEnded && q.quota.ShowsPlaceholders() {
		return always
	}
	if happened || e.keptEnded {
		by |= keptBack
	}
	if e.capacityGrew || e.shareBaseChanged || freed {
		by |= anyRoom
	}
	if freed {
		by |= moreQuota
	}
	if e.ranges.any() {
		by |= otherRanges
	}
	return by
}

// mayHaveChanged reports whether the events may change the refusal of the class;
// happened is whether reservations are stale.
func (d *decision) mayHaveChanged(class *equivalenceClass, happened bool) bool {
	e, q := &d.state.events, class.queue
	freed := e.quotaFreed[q.quota.Root()]
	due := isDue(class.retryAt, d.now)
	switch {
	case e.clusterAdded, e.clustersChanged, due, e.namespaces && q.quota.Selector() != nil, len(class.first().beyond) > 0 && e.ranges.has(class.first().Workload.Namespace), e.shownEnded && q.quota.ShowsPlaceholders(), happened && (class.blockedBy != nil || class.sparing):
		return true
	case e.keptEnded && class.sparing:
		return true
	case class.triedPreemption && (e.capacityGrew || e.shareBaseChanged || freed):
		return true
	}
	return freed && class.mayFitQuota()
}

// mayFitQuota reports whether one of the assignments of the class may be within quota
// now.
func (c *equivalenceClass) mayFitQuota() bool {
	return slices.ContainsFunc(c.overQuota, func(over overQuota) bool {
		return c.queue.quota.Fits([]quota.Charge{over.Charge})
	})
}

// invalidateVerdict forgets that a flavored signature has no places on a cluster.
func (s *State) invalidateVerdict(flavored *flavoredSignature, cluster string) {
	delete(flavored.verdicts, cluster)
	for class := range flavored.blocked {
		s.reopen(class) // heaps order by first gangs, so the order of reopening does not matter
	}
}

// noteUsage notes that a queue uses more. If it borrows, or under fair sharing, others
// may now reclaim what they could not before; if quota was kept for it, that is over.
func (d *decision) noteUsage(q *queue, a quota.Assess) {
	d.effects.usageGrew = d.effects.usageGrew || q.keepsQuota() || a.Level > 0 || d.state.fair()
}
