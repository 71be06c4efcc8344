package admission

import (
	"cmp"
	"fmt"
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

// singleTries bounds how many gangs are tried as the only victim.
const singleTries = 64

// candidate is a started gang that may be evicted for a waiting one.
type candidate struct {
	*Started
	policy string
	lost   int64 // pods x seconds that its eviction throws away
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
	if policy == nil {
		return false
	}
	attempts := d.attempts(w, a)
	going := d.going()
	if len(attempts) == 0 && !(w.Claiming && len(going) > 0) {
		return false
	}
	w.bucket.preempts = true
	var best *victims
	var on string
	for _, cluster := range d.state.clusters {
		p := &preemption{d: d, w: w, charges: a.Charges, variant: v, cluster: cluster, going: going}
		if d.state.fleets[cluster].Len() == 0 {
			continue
		}
		if found := p.search(attempts); found != nil && (best == nil || found.compare(best) < 0) {
			best, on = found, cluster
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
			Message:    fmt.Sprintf("evicted for workload %s of queue %q, priority %d (%s)", w.Workload.ID, w.queue.name, w.Workload.Priority, g.policy),
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
			all = append(all, attempt{list, borrow})
		}
	}
	canBorrowAbove := q.Preemption.BorrowWithinCohort != nil && q.Preemption.BorrowWithinCohort.Policy == quota.LowerPriority
	own := d.candidates(w, withinQueue)
	if d.state.fair() {
		add(true, own)
		add(true, d.candidates(w, fairShare), own)
		return all
	}
	// What is more than the own quota does not evict, as in Kueue, unless it may
	// do so while it borrows.
	if !q.ExceedsNominal(a.Charges) || canBorrowAbove {
		add(true, own)
	}
	add(false, d.candidates(w, reclaimed), own)
	if canBorrowAbove {
		add(true, d.candidates(w, borrowWithin), own)
	}
	return all
}

// candidates returns whom the policy lets the workload evict, those of the lowest
// priority and with the least work to lose first.
func (d *decision) candidates(w *Waiting, policy string) []candidate {
	var list []candidate
	for _, q := range d.state.sorted {
		if (q == w.queue) != (policy == withinQueue) || !w.queue.quota.SameTree(q.quota) {
			continue
		}
		for _, g := range q.started {
			if g.Going || !w.mayEvict(g, policy) || d.state.fought[w.Workload.ID][g.Workload.ID] || d.state.fought[g.Workload.ID][w.Workload.ID] {
				continue
			}
			if until := g.protectedUntil(); d.now.Before(until) {
				if b := w.bucket; b.retryAt.IsZero() || until.Before(b.retryAt) {
					b.retryAt = until
				}
				continue
			}
			ran := max(0, d.now.Sub(g.Admitted)) / time.Second
			list = append(list, candidate{g, policy, int64(g.Workload.Pods()) * int64(ran)})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Workload.Priority, b.Workload.Priority), cmp.Compare(a.lost, b.lost),
			cmp.Compare(b.Order, a.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
	})
	return list
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

// compare orders by what evictions cost: fewer gangs, then the lower priority of
// the highest among them, then less lost work.
func (v *victims) compare(other *victims) int {
	cost := func(v *victims) (highest int32, lost int64) {
		for i, c := range v.list {
			if i == 0 || c.Workload.Priority > highest {
				highest = c.Workload.Priority
			}
			lost += c.lost
		}
		return highest, lost
	}
	highest, lost := cost(v)
	otherHighest, otherLost := cost(other)
	return cmp.Or(cmp.Compare(len(v.list), len(other.list)), cmp.Compare(highest, otherHighest), cmp.Compare(lost, otherLost))
}
