package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
)

// candidateSet is a set of candidates in the order of their eviction, and whether the
// workload may borrow when they are gone.
type candidateSet struct {
	candidates []candidate
	borrow     bool
	// fallback: it is for what the sets before it cannot do.
	fallback bool
	needs    []need // computed on demand: what is lacking while all of them run
}

// candidateSets returns what Kueue's policies permit while the gangs that are being torn
// down count as gone. barred reports that there are candidates, and that usage alone keeps
// the workload from evicting any of them.
func (d *decision) candidateSets(w *Waiting, a quota.Assess, terminating []*Started) (sets []candidateSet, barred bool) {
	before := d.state.tree.Begin()
	defer d.state.tree.Rollback(before)
	for _, g := range terminating {
		g.queue.quota.Release(g.charges)
	}
	others := d.candidates(w, a, reclaimed)
	own := d.candidates(w, a, withinQueue)
	if len(others)+len(own) == 0 {
		return nil, false
	}
	sets = d.permittedSets(w, a, others, own)
	return sets, len(sets) == 0
}

// permittedSets returns the sets of candidates that the usage permits the workload to evict;
// there is at least one candidate.
func (d *decision) permittedSets(w *Waiting, a quota.Assess, others, own []candidate) []candidateSet {
	lacking := w.queue.quota.Lacking(a.Charges)
	switch {
	case !w.mayPreemptFor(lacking, d.state.fair()):
		return nil
	case d.state.fair():
		return d.fairSets(others, own)
	}
	return w.classicalSets(a, lacking, others, own)
}

// mayPreemptFor reports whether the workload may evict gangs for what it lacks. As in
// Kueue, that is within the nominal quota of its queue, or a cohort below the root has it,
// or the queue may evict while it borrows.
func (w *Waiting) mayPreemptFor(lacking []quota.Charge, fair bool) bool {
	q := w.queue.quota
	if w.mayEvictWhileBorrowing() || fair && q.Preemption.Reclaims() {
		return true
	}
	return !slices.ContainsFunc(lacking, func(c quota.Charge) bool {
		return q.ExceedsNominal([]quota.Charge{c}) && !q.SubtreeHas(c)
	})
}

func (w *Waiting) mayEvictWhileBorrowing() bool {
	b := w.queue.quota.Preemption.BorrowWithinCohort
	return b != nil && b.Policy == quota.LowerPriority
}

// classicalSets returns the candidates without fair sharing, as Kueue has them. While it
// borrows, the workload evicts gangs of its own queue, those that use quota of a cohort
// that has what the workload asks for, and those that borrowWithinCohort lets it evict.
// The others give back what they borrow only if the workload then does not borrow.
func (w *Waiting) classicalSets(a quota.Assess, lacking []quota.Charge, others, own []candidate) []candidateSet {
	q := w.queue.quota
	var above, whileBorrowing, rest []candidate // by rising order of eviction
	for _, c := range others {
		switch {
		case q.HasAdvantageOver(c.queue.quota, a.Charges):
			above = append(above, c)
		case w.mayEvictWhileBorrowing() && w.mayEvict(c.Started, borrowWithin):
			with := c
			with.policy = borrowWithin
			whileBorrowing, rest = append(whileBorrowing, with), append(rest, c)
		default:
			rest = append(rest, c)
		}
	}
	var sets []candidateSet
	if list := slices.Concat(above, whileBorrowing, own); len(list) > 0 {
		sets = append(sets, candidateSet{candidates: list, borrow: true})
	}
	if len(lacking) == 0 {
		lacking = a.Charges // only places lack
	}
	if len(rest) == len(whileBorrowing) || !w.mayEvictWhileBorrowing() && !q.UnderNominal(lacking) {
		return sets
	}
	sets = append(sets, candidateSet{candidates: slices.Concat(above, rest, own)})
	if !w.mayEvictWhileBorrowing() && len(above) == 0 {
		slices.Reverse(sets)
	}
	return sets
}

// fairSets returns the candidates under fair sharing. A strategy is for what those before
// it cannot do. Whether it permits an eviction can depend on the evictions before, those
// of the own queue among them, so these are tried last and first.
func (d *decision) fairSets(others, own []candidate) []candidateSet {
	rankAmong(others, own)
	if len(others) == 0 {
		return []candidateSet{{candidates: own, borrow: true}}
	}
	var sets []candidateSet
	for n := range d.strategies() {
		asked := slices.Clone(others)
		for i := range asked {
			asked[i].policy, asked[i].strategies = fairShare, n+1
		}
		sets = append(sets, candidateSet{candidates: slices.Concat(asked, own), borrow: true, fallback: n > 0})
		if len(own) > 0 {
			sets = append(sets, candidateSet{candidates: slices.Concat(own, asked), borrow: true, fallback: n > 0})
		}
	}
	return sets
}

// rankAmong ranks candidates among the queues that have candidates. Only so is the rank of
// the gang that is evicted first a lower bound.
func rankAmong(lists ...[]candidate) {
	byQueue := map[*queue]int{}
	for _, list := range lists {
		for _, c := range list {
			byQueue[c.queue] = c.shareRank
		}
	}
	ranks := slices.Sorted(maps.Values(byQueue))
	for _, list := range lists {
		for i, c := range list {
			list[i].shareRank, _ = slices.BinarySearch(ranks, c.shareRank) // how many are smaller
		}
	}
}

// strategies returns the strategies of fair sharing, in order.
func (d *decision) strategies() []string {
	if configured := d.state.tree.Config().FairSharing.PreemptionStrategies; len(configured) > 0 {
		return configured
	}
	return []string{quota.LessThanOrEqualToFinalShare, quota.LessThanInitialShare}
}

// candidates returns the gangs that the policy lets the workload evict. As in Kueue they
// are ordered by the share of their queue (under fair sharing, the largest first), then
// by priority (the lowest first), then by admission (the last first; of those that were
// admitted at once the one with the fewest CPUs). Whether quota
// permits an eviction can depend on the evictions before it, so time alone must not
// change the order. Therefore lost work is no part of it; the price of a set has it.
func (d *decision) candidates(w *Waiting, a quota.Assess, policy string) []candidate {
	var list []candidate
	ranks := d.sharesWith(w, a.Charges)
	for _, q := range d.state.sorted {
		if (q == w.queue) != (policy == withinQueue) || !w.queue.quota.SameTree(q.quota) {
			continue
		}
		for _, g := range q.started {
			if g.Terminating || g.Frozen || g.Workload.ID == w.Workload.ID || !w.mayEvict(g, policy) {
				continue
			}
			if g.giving != nil { // it is asked for more when it has given that up
				w.class.tried(notHopeless)
				continue
			}
			evictedBefore := d.state.evictedFor.between(w.Workload.ID, g.Workload.ID)
			if evictedBefore && !slices.Equal(a.Charges, g.charges) {
				continue
			}
			if until := g.protectedUntil(); d.now.Before(until) {
				w.class.retryBy(until)
				continue
			}
			list = append(list, candidate{Started: g, policy: policy, regret: d.regretOf(g), shareRank: ranks[q], evictedBefore: evictedBefore, cpus: g.Workload.Requested(resource.CPU)})
		}
	}
	d.state.rankByUse(list)
	slices.SortFunc(list, byEviction)
	return list
}

// byEviction orders candidates by who is evicted first.
func byEviction(a, b candidate) int {
	switch { // no comparison is made that does not count: there are many candidates
	case a.shareRank != b.shareRank:
		return cmp.Compare(a.shareRank, b.shareRank)
	case byUseOfOwn(a, b) != 0:
		return byUseOfOwn(a, b)
	case a.Workload.Priority != b.Workload.Priority:
		return cmp.Compare(a.Workload.Priority, b.Workload.Priority)
	case !a.Admitted.Equal(b.Admitted):
		return b.Admitted.Compare(a.Admitted)
	case a.cpus != b.cpus:
		return cmp.Compare(a.cpus, b.cpus)
	case a.Order != b.Order:
		return cmp.Compare(b.Order, a.Order)
	}
	return cmp.Compare(a.Workload.ID, b.Workload.ID)
}

// byUseOfOwn orders candidates of the workload's own queue by the use of their LocalQueues.
// Quota permits these in any order, so use, which time alone changes, may be a part of theirs.
func byUseOfOwn(a, b candidate) int {
	if a.policy != withinQueue || b.policy != withinQueue {
		return 0
	}
	return cmp.Compare(a.useRank, b.useRank)
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
		return lower && p.Reclaims() && (b.MaxPriorityThreshold == nil || g.Workload.Priority <= *b.MaxPriorityThreshold)
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
