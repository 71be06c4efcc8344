package admission

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
	lost   int64 // pods x seconds of work that its eviction loses
	// shareRank is, under fair sharing, the rank of its queue in the tree by falling
	// share; else zero.
	shareRank int
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
	// hopeless: it has no places even with all candidates gone.
	hopeless bool
	// cut: a bound ended the search for cheaper victims.
	cut bool
	// other is the best set of victims that was found and not chosen; nil for none.
	other *victims
}

// victims are the gangs to evict, and the places that the workload then has.
type victims struct {
	list   []candidate
	places []workload.Placement
}

// preempt evicts gangs if that provably admits the workload, and nominates it for what
// they free. It reports whether it did. Gangs that are being torn down count as gone;
// if that is enough, it evicts none.
func (d *decision) preempt(w *Waiting, a quota.Assess, flavored *flavoredSignature) bool {
	policy := w.queue.quota.Preemption
	if policy == nil || w.Grows && w.Workload.Interdependent() {
		return false
	}
	if !d.maySearch(w) {
		return false
	}
	sets := d.candidateSets(w, a)
	for _, a := range sets {
		d.spend(w.queue, stepsPerCandidate*len(a.candidates))
	}
	terminating := d.terminating()
	if len(sets) == 0 && !(w.Nominated && len(terminating) > 0) {
		return false
	}
	if !w.class.triedPreemption {
		w.class.triedPreemption, w.class.hopelessAt = true, d.state.departed
	}
	d.reserveHeads(w)
	var best, other *victims
	var on string
	cut := false
	for _, cluster := range d.state.clustersFor(w) {
		p := &preemption{d: d, w: w, charges: a.Charges, flavored: flavored, cluster: cluster, terminating: terminating, hopeless: true}
		if d.state.fleets[cluster].Len() == 0 {
			continue
		}
		found := p.search(sets)
		other, cut = cheaper(other, p.other), cut || p.cut
		if cheaper(best, found) != best {
			best, found, on = found, best, cluster
		}
		other = cheaper(other, found)
		if !p.hopeless {
			w.class.hopelessAt = notHopeless
		}
	}
	if best == nil {
		return false
	}
	n := &nomination{waiting: w, assess: a, flavored: flavored, cluster: on, places: best.places, awaits: terminating, cut: cut}
	if len(best.list) > 0 {
		n.choice = d.choiceOf(best, other)
	}
	d.evictFor(n, best.list)
	return true
}

// terminating returns the gangs that are being torn down, by submission.
func (d *decision) terminating() []*Started {
	var terminating []*Started
	for _, q := range d.state.sorted {
		for _, g := range q.started {
			if g.Terminating {
				terminating = append(terminating, g)
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
		cost := d.evictionCost(g.Started)
		d.evict(g.Started, workload.Reason{
			Kind: workload.ReasonPreempted,
			Message: fmt.Sprintf("preempted to accommodate %s with priority %d (policy %s); %s",
				nameFor(g.Workload, w.Workload), w.Workload.Priority, g.policy, costText(g.Started, cost, n.cut)),
			Foreign:    foreign(g.Workload, w.Workload),
			Preemption: &workload.PreemptionCause{Preemptor: w.Workload.ID, Policy: g.policy, Cost: &cost, Cut: n.cut, Choice: n.choice},
		})
		g.preempted = true
		n.awaits = append(n.awaits, g.Started)
		if d.state.evictedFor[w.Workload.ID] == nil {
			d.state.evictedFor[w.Workload.ID] = map[workload.ID]bool{}
		}
		d.state.evictedFor[w.Workload.ID][g.Workload.ID] = true
	}
	d.nominate(n)
	d.wait(w, n.reason())
	w.Reported = true
}

// candidateSet is a set of candidates in the order of their eviction, and whether the
// workload may borrow when they are gone.
type candidateSet struct {
	candidates []candidate
	borrow     bool
	needs      []need // computed on demand: what is lacking while all of them run
}

// candidateSets returns what Kueue's policies permit: to evict within the own queue and
// borrow; to reclaim from the cohort without borrowing; to evict gangs of lower priority
// in the cohort and borrow; under fair sharing, to evict where the shares justify it.
func (d *decision) candidateSets(w *Waiting, a quota.Assess) []candidateSet {
	q := w.queue.quota
	var all []candidateSet
	add := func(borrow bool, groups ...[]candidate) {
		if list := slices.Concat(groups...); len(list) > 0 {
			all = append(all, candidateSet{candidates: list, borrow: borrow})
		}
	}
	canBorrowAbove := q.Preemption.BorrowWithinCohort != nil && q.Preemption.BorrowWithinCohort.Policy == quota.LowerPriority
	own := d.candidates(w, a, withinQueue)
	if d.state.fair() {
		add(true, d.candidates(w, a, fairShare), own)
		return all
	}
	// As in Kueue, a workload above its nominal quota evicts gangs of its own queue only if
	// it may evict while it borrows; from the cohort it takes what a branch above it has.
	if q.ExceedsNominal(a.Charges) && !canBorrowAbove {
		own = nil
	}
	add(true, own)
	add(false, d.candidates(w, a, reclaimed), own)
	if canBorrowAbove {
		add(true, d.candidates(w, a, borrowWithin), own)
	}
	return all
}

// candidates returns the gangs that the policy lets the workload evict. As in Kueue they
// are ordered by the share of their queue (under fair sharing, the largest first), then
// by priority (the lowest first), then by admission (the last first). Whether quota
// permits an eviction can depend on the evictions before it, so time alone must not
// change the order. Therefore lost work is no part of it; the price of a set has it.
func (d *decision) candidates(w *Waiting, a quota.Assess, policy string) []candidate {
	var list []candidate
	ranks := d.shareRanks(w)
	for _, q := range d.state.sorted {
		if (q == w.queue) != (policy == withinQueue) || !w.queue.quota.SameTree(q.quota) {
			continue
		}
		for _, g := range q.started {
			if g.Terminating || g.Frozen || g.Workload.ID == w.Workload.ID || !w.mayEvict(g, policy) {
				continue
			}
			evictedBefore := d.state.evictedFor[w.Workload.ID][g.Workload.ID] || d.state.evictedFor[g.Workload.ID][w.Workload.ID]
			if evictedBefore && !slices.Equal(a.Charges, g.charges) {
				continue
			}
			if until := g.protectedUntil(); d.now.Before(until) {
				w.class.retryBy(until)
				continue
			}
			ran := max(0, d.now.Sub(g.Admitted)) / time.Second
			list = append(list, candidate{g, policy, int64(g.Workload.Pods()) * int64(ran), ranks[q], evictedBefore})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if by := cmp.Or(cmp.Compare(a.shareRank, b.shareRank), cmp.Compare(a.Workload.Priority, b.Workload.Priority),
			b.Admitted.Compare(a.Admitted), cmp.Compare(b.Order, a.Order)); by != 0 {
			return by
		}
		return cmp.Compare(a.Workload.ID, b.Workload.ID)
	})
	return list
}

// shareRanks ranks the queues of the workload's tree under fair sharing, as Kueue does:
// from the root down, the branch with the larger share comes first.
func (d *decision) shareRanks(w *Waiting) map[*queue]int {
	if !d.state.fair() {
		return nil
	}
	shares := map[*queue][]quota.Share{}
	var queues []*queue
	for _, q := range d.state.sorted {
		if w.queue.quota.SameTree(q.quota) {
			shares[q] = q.quota.Shares()
			queues = append(queues, q)
		}
	}
	slices.SortStableFunc(queues, func(a, b *queue) int { return slices.Compare(shares[b], shares[a]) })
	ranks := map[*queue]int{}
	for i, q := range queues {
		if i > 0 && slices.Equal(shares[q], shares[queues[i-1]]) {
			ranks[q] = ranks[queues[i-1]]
		} else {
			ranks[q] = i
		}
	}
	return ranks
}

// mayEvict is Kueue's rule of which gangs a workload may evict, quota aside.
func (w *Waiting) mayEvict(g *Started, policy string) bool {
	p, lower := w.queue.quota.Preemption, g.Workload.Priority < w.Workload.Priority
	switch policy {
	case withinQueue:
		newer := g.Workload.Priority == w.Workload.Priority && g.Order > w.Order
		return p.WithinClusterQueue == quota.LowerPriority && lower ||
			p.WithinClusterQueue == quota.LowerOrNewerEqualPriority && (lower || newer)
	case borrowWithin:
		b := p.BorrowWithinCohort
		return lower && p.ReclaimWithinCohort != quota.Never && p.ReclaimWithinCohort != "" &&
			(b.MaxPriorityThreshold == nil || g.Workload.Priority <= *b.MaxPriorityThreshold)
	}
	return p.ReclaimWithinCohort == quota.Any || p.ReclaimWithinCohort == quota.LowerPriority && lower
}

// leastRun keeps a decision from evicting what it has itself admitted.
const leastRun = time.Second

// protectedUntil returns the end of the minimum run time of the gang's queue.
func (g *Started) protectedUntil() time.Time {
	run := leastRun
	if p := g.queue.quota.Preemption; p != nil {
		run = max(run, time.Duration(p.MinRunSeconds)*time.Second)
	}
	return g.Admitted.Add(run)
}
