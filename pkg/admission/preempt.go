package admission

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
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
	lost   int64 // pods x seconds that its eviction throws away
	// offence is, under fair sharing, the place of its queue among all of the tree
	// in falling order of their shares; else zero.
	offence int
	// again: one of the two has been evicted for the other before. Then only an
	// exchange is possible.
	again bool
}

// preemption is the search for victims for one waiting workload under one
// assignment, on one cluster.
type preemption struct {
	d       *decision
	w       *Waiting
	charges []quota.Charge
	variant *variant
	cluster string
	going   []*Started
	// hopeless: it has no places even when all candidates are gone.
	hopeless bool
}

// victims are who is to be evicted, and the places that this makes.
type victims struct {
	list   []candidate
	places []workload.Placement
}

// preempt has gangs evicted if that provably admits the workload, and holds for
// it what they free. It reports whether it did. Gangs that are being torn down
// already count as gone: if that is enough nobody is evicted.
func (d *decision) preempt(w *Waiting, a quota.Assess, v *variant) bool {
	policy := w.queue.quota.Preemption
	if policy == nil || w.Grows && w.Workload.Interdependent() {
		return false
	}
	if !d.mayLook(w) {
		return false
	}
	attempts := d.attempts(w, a)
	for _, a := range attempts {
		d.spend(w.queue, stepsPerCandidate*len(a.candidates))
	}
	going := d.going()
	if len(attempts) == 0 && !(w.Claiming && len(going) > 0) {
		return false
	}
	if !w.bucket.preempts {
		w.bucket.preempts, w.bucket.hopeless = true, d.state.left
	}
	d.reserveHeads(w)
	var best *victims
	var on string
	for _, cluster := range d.state.clustersFor(w) {
		p := &preemption{d: d, w: w, charges: a.Charges, variant: v, cluster: cluster, going: going, hopeless: true}
		if d.state.fleets[cluster].Len() == 0 {
			continue
		}
		if found := p.search(attempts); cheaper(best, found) != best {
			best, on = found, cluster
		}
		if !p.hopeless {
			w.bucket.hopeless = hopeful
		}
	}
	if best == nil {
		return false
	}
	d.carryOut(w, a, v, on, best, going)
	return true
}

// going returns the gangs that are being torn down, by submission.
func (d *decision) going() []*Started {
	var going []*Started
	for _, q := range d.state.sorted {
		for _, g := range q.started {
			if g.Going {
				going = append(going, g)
			}
		}
	}
	slices.SortFunc(going, func(a, b *Started) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
	})
	return going
}

func (d *decision) carryOut(w *Waiting, a quota.Assess, v *variant, cluster string, found *victims, going []*Started) {
	c := &claim{waiting: w, assess: a, variant: v, cluster: cluster, places: found.places, leaving: slices.Clone(going)}
	for _, g := range found.list {
		d.evict(g.Started, workload.Reason{
			Kind:       workload.ReasonPreempted,
			Message:    fmt.Sprintf("evicted for %s, priority %d (%s)", nameFor(g.Workload, w.Workload), w.Workload.Priority, g.policy),
			Foreign:    foreign(g.Workload, w.Workload),
			Preemption: &workload.PreemptionCause{Preemptor: w.Workload.ID, Policy: g.policy},
		})
		g.preempted = true
		c.leaving = append(c.leaving, g.Started)
		if d.state.fought[w.Workload.ID] == nil {
			d.state.fought[w.Workload.ID] = map[workload.ID]bool{}
		}
		d.state.fought[w.Workload.ID][g.Workload.ID] = true
	}
	d.hold(c)
	d.wait(w, c.reason())
	w.Told = true
}

// attempt is a set of candidates, in the order in which they would be evicted,
// and whether the workload may borrow when they are gone.
type attempt struct {
	candidates []candidate
	borrow     bool
	needs      []need // once asked for: what is lacking while nobody of them is gone
}

// attempts returns what Kueue's policies permit: to evict within the own queue
// and borrow; to take back what the cohort has lent, as long as that does not
// have to borrow itself; to evict others' of lower priority and borrow; under
// fair sharing, those whose eviction the shares justify.
func (d *decision) attempts(w *Waiting, a quota.Assess) []attempt {
	q := w.queue.quota
	var all []attempt
	add := func(borrow bool, groups ...[]candidate) {
		if list := slices.Concat(groups...); len(list) > 0 {
			all = append(all, attempt{candidates: list, borrow: borrow})
		}
	}
	canBorrowAbove := q.Preemption.BorrowWithinCohort != nil && q.Preemption.BorrowWithinCohort.Policy == quota.LowerPriority
	own := d.candidates(w, a, withinQueue)
	if d.state.fair() {
		add(true, d.candidates(w, a, fairShare), own)
		return all
	}
	// What is more than the own quota does not evict, as in Kueue, unless it may
	// do so while it borrows.
	if !q.ExceedsNominal(a.Charges) || canBorrowAbove {
		add(true, own)
	}
	add(false, d.candidates(w, a, reclaimed), own)
	if canBorrowAbove {
		add(true, d.candidates(w, a, borrowWithin), own)
	}
	return all
}

// candidates returns whom the policy lets the workload evict: of the queues with
// the largest shares first, if sharing is fair, then those of the lowest priority
// the last admitted first, as in Kueue. Whether quota permits an eviction can
// depend on which others it follows, so time alone must not change the order: work
// lost does not order them, it is weighed among the sets that are permitted.
func (d *decision) candidates(w *Waiting, a quota.Assess, policy string) []candidate {
	var list []candidate
	offences := d.offences(w)
	for _, q := range d.state.sorted {
		if (q == w.queue) != (policy == withinQueue) || !w.queue.quota.SameTree(q.quota) {
			continue
		}
		for _, g := range q.started {
			if g.Going || g.Kept || g.Workload.ID == w.Workload.ID || !w.mayEvict(g, policy) {
				continue
			}
			again := d.state.fought[w.Workload.ID][g.Workload.ID] || d.state.fought[g.Workload.ID][w.Workload.ID]
			if again && !slices.Equal(a.Charges, g.charges) {
				continue
			}
			if until := g.protectedUntil(); d.now.Before(until) {
				if b := w.bucket; b.retryAt.IsZero() || until.Before(b.retryAt) {
					b.retryAt = until
				}
				continue
			}
			ran := max(0, d.now.Sub(g.Admitted)) / time.Second
			list = append(list, candidate{g, policy, int64(g.Workload.Pods()) * int64(ran), offences[q], again})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if by := cmp.Or(cmp.Compare(a.offence, b.offence), cmp.Compare(a.Workload.Priority, b.Workload.Priority),
			b.Admitted.Compare(a.Admitted), cmp.Compare(b.Order, a.Order)); by != 0 {
			return by
		}
		return cmp.Compare(a.Workload.ID, b.Workload.ID)
	})
	return list
}

// offences ranks the queues of the workload's tree, if sharing is fair, as Kueue
// does: from the root down the branch with the larger share comes first.
func (d *decision) offences(w *Waiting) map[*queue]int {
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

// mayEvict is Kueue's rule of who may be evicted by whom, the state of quotas
// aside.
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

// protectedUntil is the end of the minimum run time that the gang's queue
// promises.
func (g *Started) protectedUntil() time.Time {
	run := leastRun
	if p := g.queue.quota.Preemption; p != nil {
		run = max(run, time.Duration(p.MinRunSeconds)*time.Second)
	}
	return g.Admitted.Add(run)
}

// price is what the eviction of some gangs costs. It never falls when a gang is
// added.
type price struct {
	gangs   int
	offence int // the greatest: the least offender among the queues
	highest int32
	lost    int64
}

func priceOf(list []candidate) price {
	p := price{highest: math.MinInt32}
	for _, c := range list {
		p = p.plus(c)
	}
	return p
}

func (p price) plus(c candidate) price {
	return price{p.gangs + 1, max(p.offence, c.offence), max(p.highest, c.Workload.Priority), p.lost + c.lost}
}

func (p price) and(other price) price {
	return price{p.gangs + other.gangs, max(p.offence, other.offence), max(p.highest, other.highest), p.lost + other.lost}
}

// compare orders by what evictions cost: fewer gangs, then those of the queues
// with the largest shares, then the lower priority of the highest among them,
// then less lost work.
func (p price) compare(other price) int {
	return cmp.Or(cmp.Compare(p.gangs, other.gangs), cmp.Compare(p.offence, other.offence),
		cmp.Compare(p.highest, other.highest), cmp.Compare(p.lost, other.lost))
}

// cheaper returns the victims that cost less, the first ones if they are even;
// nil are none.
func cheaper(a, b *victims) *victims {
	if a == nil || b != nil && priceOf(b.list).compare(priceOf(a.list)) < 0 {
		return b
	}
	return a
}
