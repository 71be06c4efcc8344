package admission

import (
	"cmp"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Policies by which a gang becomes a candidate for preemption.
const (
	withinQueue  = "withinClusterQueue"
	reclaimed    = "reclaimWithinCohort"
	borrowWithin = "borrowWithinCohort"
	fairShare    = "fairSharing"
)

// candidate is a started gang that may be evicted for a waiting one.
type candidate struct {
	*Started
	policy string
	regret regret // what its eviction loses
	// shareRank is, under fair sharing, the rank of its queue in the tree by falling
	// share before any eviction; else zero.
	shareRank int
	// useRank is the rank of its LocalQueue by falling use, where that counts; else zero.
	useRank int
	// cpus is what it requests of CPU.
	cpus int64
	// strategies is how many strategies of fair sharing, in order, may permit it.
	strategies int
	// evictedBefore: one of the two has been evicted for the other before, so only an
	// exchange is possible.
	evictedBefore bool
}

// preemption is the search for victims for one waiting workload under one
// assignment, on one cluster.
type preemption struct {
	d           *decision
	w           *Waiting
	charges     []quota.Charge
	overQuota   []quota.Charge // of them, those that say from whom quota may be reclaimed
	flavored    *flavoredSignature
	cluster     string
	terminating []*Started
	// payer is the queue whose allowance pays for the search.
	payer *queue
	// hopeless: it has no places even with all candidates gone.
	hopeless bool
	// cut: a bound ended the search for cheaper victims.
	cut bool
	// unknown: the last what-if has no answer. short: one had none for want of allowance.
	unknown, short bool
	// trimmed is how many evictions have been tried to have gangs give up less.
	trimmed int
	// other is the best set of victims that was found and not chosen; nil for none.
	other *victims
}

// victims are the gangs to evict, and the places that the workload then has.
type victims struct {
	list   []candidate
	places []workload.Placement
	price  price
	// fallback: they are of a set that is for what others cannot do.
	fallback bool
	// borrow: the workload may borrow when they are gone.
	borrow bool
	// cascades: one of them would evict others when it comes back, and there is a set without it.
	cascades bool
}

// preempt evicts gangs if that provably admits the workload, and nominates it for what
// they free. It reports whether it did. Gangs that are being torn down count as gone;
// if that is enough, it evicts none.
func (d *decision) preempt(w *Waiting, a quota.Assess, flavored *flavoredSignature) bool {
	n, list := d.assessedVictims(w, a, flavored)
	if n == nil {
		return false
	}
	d.evictUnder(w, a, n, list)
	return true
}

// assessedVictims is victimsFor without another search where assess has made it. While a search of
// the workload is put off nothing is evicted by what was found before it, and with quota that was
// taken back fewer may have to go.
func (d *decision) assessedVictims(w *Waiting, a quota.Assess, flavored *flavoredSignature) (*nomination, []candidate) {
	room, known := d.trying.rooms[a.Assignment]
	if !known || a.Mode != quota.Preempting || w.class.cut {
		return d.victimsFor(w, a, flavored)
	}
	if room.nomination != nil {
		room.nomination.assess = a
	}
	return room.nomination, room.victims
}

// evictUnder evicts the victims of a workload under an assignment, or first puts it to the checks
// of that.
func (d *decision) evictUnder(w *Waiting, a quota.Assess, n *nomination, list []candidate) {
	if !d.putToChecks(w, a, false) {
		d.evictFor(n, list)
	}
}

// victimsFor returns the nomination of a workload that others are evicted for, and these
// gangs; nil when no evictions that are permitted admit it.
func (d *decision) victimsFor(w *Waiting, a quota.Assess, flavored *flavoredSignature) (*nomination, []candidate) {
	policy := w.queue.quota.Preemption
	if policy == nil || w.Grows && w.Workload.Interdependent() {
		return nil, nil
	}
	if d.mustSpare(w) || d.getsNodesLater(w) { // until the reservation ends, or begins
		w.class.spares()
	}
	if len(d.keptParts) > 0 {
		d.retryWithoutKept(w, d.state.clustersFor(w))
	}
	if !d.maySearch(w) {
		return nil, nil
	}
	terminating := d.terminating()
	sets, barred := d.candidateSets(w, a, terminating)
	for _, a := range sets {
		d.spend(w.queue, stepsPerCandidate*len(a.candidates))
	}
	if barred && !w.class.triedPreemption { // until usage permits it
		w.class.tried(notHopeless)
	}
	if len(sets) == 0 && !(w.Nominated && len(terminating) > 0) {
		return nil, nil
	}
	if !w.class.triedPreemption {
		w.class.tried(d.state.departed)
	}
	d.reserveHeads(w)
	tries, short := [][]candidateSet{sets}, false
	if parts := d.partsOf(sets); len(parts) > 0 {
		tries = [][]candidateSet{parts, sets}
	}
	for _, among := range tries {
		n, list, cut := d.search(w, a, flavored, terminating, among)
		if n != nil {
			return n, list
		}
		short = short || cut
	}
	if short {
		d.state.searched.Cut++
		d.retryWhenFull(w.class)
	}
	return nil, nil
}

// search looks for the cheapest victims among the candidates of the sets, in each cluster.
// short means that it found none and that there may be some: the allowance ended it.
func (d *decision) search(w *Waiting, a quota.Assess, flavored *flavoredSignature, terminating []*Started, sets []candidateSet) (n *nomination, list []candidate, short bool) {
	var best, other *victims
	var on string
	cut := false
	from := clustersOf(sets)
	if len(from) > 1 { // evictions of others in one cluster may leave those in another to be enough
		w.class.mayBeHelped()
	}
	for _, cluster := range d.state.offering(d.state.clustersFor(w), a.Flavors) {
		if d.state.fleets[cluster].Len() == 0 {
			continue
		}
		for _, among := range d.state.victimClusters(flavored, cluster, from) {
			p := &preemption{d: d, w: w, charges: a.Charges, flavored: flavored, cluster: cluster, terminating: terminating, payer: w.queue, hopeless: true}
			found := p.search(within(sets, among, len(from)))
			other, cut = cheaper(other, p.other), cut || p.cut
			if cheaper(best, found) != best {
				best, found, on = found, best, cluster
			}
			other = cheaper(other, found)
			if !p.hopeless {
				w.class.mayBeHelped()
				short = short || p.short
			}
		}
	}
	if best == nil {
		return nil, nil, short
	}
	n = &nomination{waiting: w, assess: a, flavored: flavored, cluster: on, places: best.places, awaits: terminating, cut: cut}
	if len(best.list) > 0 {
		n.choice = d.choiceOf(best, other)
	}
	return n, best.list, false
}

// terminating returns the gangs that are being torn down, and the parts that others give up,
// by submission.
func (d *decision) terminating() []*Started {
	var terminating []*Started
	for _, q := range d.state.sorted {
		for _, g := range q.started {
			if g.Terminating {
				terminating = append(terminating, g)
			} else if g.giving != nil {
				terminating = append(terminating, g.giving)
			}
		}
	}
	slices.SortFunc(terminating, func(a, b *Started) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
	})
	return terminating
}

// evictFor evicts the victims, and nominates the workload for what they free.
func (d *decision) evictFor(n *nomination, list []candidate) {
	w := n.waiting
	n.awaits = slices.Clone(n.awaits)
	for _, g := range list {
		cost := d.state.evictionCost(g.Started, d.now)
		why := workload.Reason{
			Kind: workload.ReasonPreempted,
			Message: fmt.Sprintf("preempted to accommodate %s with priority %d (policy %s); %s",
				nameFor(g.Workload, w.Workload), w.Workload.Priority, g.policy, costText(cost, n.cut)),
			Foreign:    foreign(g.Workload, w.Workload),
			Preemption: &workload.PreemptionCause{Preemptor: w.Workload.ID, Policy: g.policy, Cost: &cost, Cut: n.cut, Choice: n.choice},
		}
		if g.whole != nil {
			d.shrink(g.Started, why)
		} else {
			d.evict(g.Started, why)
			g.preempted = true
		}
		n.awaits = append(n.awaits, g.Started)
		d.state.evictedFor.add(w.Workload.ID, g.Workload.ID)
	}
	d.nominate(n)
	d.wait(w, n.reason())
	w.Reported = true
}
