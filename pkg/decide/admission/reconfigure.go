package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Reconfigure gives the state another tree of queues, of which nothing is used. Waiting
// workloads, started gangs and nominations stay; all verdicts are dropped.
func (s *State) Reconfigure(tree *quota.Tree) {
	s.clearUnschedulable()
	*s = *s.rebuilt(tree, s.firstWaiting(s.waiting.Len()))
	s.noteLeft()
}

// clearUnschedulable removes all flavored signatures from the unschedulable sets.
func (s *State) clearUnschedulable() {
	for _, flavored := range s.flavored {
		for cluster := range flavored.verdicts {
			s.fleets[cluster].RemoveUnschedulable(flavored.key)
		}
	}
}

// rebuilt returns a state with the same nodes and copies of everything else, but of the
// waiting workloads only the given ones. It has no verdicts, and keeps since when nodes
// have been kept clear for a head.
func (s *State) rebuilt(tree *quota.Tree, waiting []*Waiting) *State {
	tree.EndBudgetStops(s.decidedAt)
	next := NewState(tree)
	next.victimOrder = s.victimOrder
	next.learned = s.learned.of(func(queue string) bool { return tree.Queue(queue) != nil })
	next.uncleared = s.uncleared
	next.fleets, next.clusters, next.silent, next.nodeSizes, next.total = s.fleets, s.clusters, s.silent, maps.Clone(s.nodeSizes), s.total
	next.namespaces, next.served, next.listed, next.newest = s.namespaces, s.served, s.listed, s.newest
	next.tree.SetCapacity(s.total)
	next.events.capacityGrew, next.events.clusterAdded = true, true
	next.searched = s.searched
	next.evictedFor = s.evictedFor.clone()
	for _, past := range s.tree.PastUsage() {
		tree.SetPastUsage(past)
	}
	next.inheritStarted(s)
	tree.ForgetUsageChanges()
	tree.InheritUsageChanges(s.tree)
	next.inheritSignatures(s)
	next.inheritWaiting(s, waiting)
	for _, n := range s.nominations {
		next.inheritNomination(n, s)
	}
	for _, r := range s.reservations {
		next.inheritReservation(r)
	}
	next.allowance = s.allowance
	for name, q := range next.queues {
		if old := s.queues[name]; old != nil {
			q.allowance = old.allowance
		}
	}
	return next
}

// inheritStarted copies the started gangs, and charges them to their queues as those are now.
func (s *State) inheritStarted(from *State) {
	for id, g := range from.started {
		c := *g
		c.queue = s.queue(c.Queue)
		c.charge()
		if g.giving != nil {
			part := *g.giving
			part.queue, part.whole = c.queue, &c
			c.giving = &part
		}
		s.started[id], c.queue.started[id] = &c, &c
	}
}

// inheritSignatures copies the signatures of pod sets, without their verdicts.
func (s *State) inheritSignatures(from *State) {
	for _, sig := range from.signatures {
		known := &podSetSignature{key: sig.key, placed: sig.placed, podSets: sig.podSets, home: sig.home, needs: sig.needs, demand: sig.demand, options: map[*queue]*flavorOptions{}}
		s.signatures[sig.key] = known
		if len(sig.podSets) > 0 {
			known.aliases = []*workload.PodSet{&sig.podSets[0]}
			s.aliases[known.aliases[0]] = known
		}
	}
	for _, sig := range from.signatures {
		if sig.least != nil {
			s.signatures[sig.key].least = s.signatures[sig.least.key]
			s.signatures[sig.least.key].refs++
		}
	}
}

// inheritWaiting enqueues the given workloads, and those that hold quota for the nodes that
// they have asked for.
func (s *State) inheritWaiting(from *State, waiting []*Waiting) {
	for _, w := range waiting {
		again := s.enqueue(w.resubmitted(from)) // the fleets have its demand already
		if !bothHeld(w.held, again.held) {
			again.Reported = false // its queue is held now, or is no longer
		}
	}
	for _, w := range from.asked {
		if s.waiting.Get(w.Workload.ID) == nil { // its quota is held in every question
			s.enqueue(w.resubmitted(from))
		}
	}
}

// inheritNomination copies a nomination, whose places the fleet has allocated already,
// unless the queue is held now.
func (s *State) inheritNomination(old *nomination, from *State) {
	n := *old
	w := s.waiting.Get(old.waiting.Workload.ID)
	if w == nil {
		s.enqueue(old.waiting.resubmitted(from))
		w = s.waiting.Get(old.waiting.Workload.ID)
	}
	if w.held != nil { // its queue admits nothing any more, so its places are free for others
		s.fleet(n.cluster).Release(w.Workload, n.places)
		s.addDemand(w)
		w.Reported = false
		return
	}
	s.removeFromClass(w)
	n.waiting = w
	n.flavored = s.matching(w, old.flavored)
	n.awaits = s.ownGangs(old.awaits)
	w.queue.quota.Allocate(n.assess.Charges)
	w.queue.nominations++
	s.nominations = append(s.nominations, &n) // the old ones are in order
}

// inheritReservation copies a reservation if its head is still among those of its queue.
// The copy is stale, so it is recomputed when the head has been tried and does not
// start. Until then no gang passes the head, and its nodes stay clear.
func (s *State) inheritReservation(old *headReservation) {
	w := s.waiting.Get(old.head.Workload.ID)
	if w == nil || w.class == nil || w.queue.strict() || !slices.Contains(w.queue.foremost(), w) {
		return
	}
	r := *old
	r.head, r.stale, r.blocked = w, true, nil
	r.flavored = s.matching(w, old.flavored)
	r.after = s.ownGangs(old.after)
	w.class.unplaced = unplaced{r.flavored, r.flavors}
	s.reservations = append(s.reservations, &r) // the old ones are in order
}

// ownGangs returns the state's copies of the started gangs of another state.
func (s *State) ownGangs(gangs []*Started) []*Started {
	var copies []*Started
	for _, g := range gangs {
		copied := s.started[g.Workload.ID]
		if copied != nil && g.whole != nil {
			copied = copied.giving
		}
		if copied != nil {
			copies = append(copies, copied)
		}
	}
	return copies
}

// matching returns the flavored signature with the key of another state's one, or a
// new one if the queue no longer gives the pod sets such flavors.
func (s *State) matching(w *Waiting, other *flavoredSignature) *flavoredSignature {
	for _, sig := range w.signature.sizes() {
		for _, flavored := range s.optionsOf(w.queue, sig).flavored {
			if flavored.key == other.key {
				return flavored
			}
		}
	}
	return &flavoredSignature{key: other.key, w: other.w, verdicts: map[string]placement.Verdict{}, blocked: map[*equivalenceClass]bool{}}
}
