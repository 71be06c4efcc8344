package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// A workload that waits for nodes or AdmissionChecks holds its quota, and without end if they do
// not come. As one with reserved quota in Kueue, it gives that up to a workload that may evict it.

// quotaVictim is a workload that gives up its quota, and the policy by which it does.
type quotaVictim struct {
	*Waiting
	policy string
}

// preemptQuota starts a workload that is not within quota by the quota of those that wait for
// nodes or checks, if Kueue's rules let it evict these and that is enough. It reports whether it
// did.
// Otherwise they keep their quota: they would only ask again.
func (d *decision) preemptQuota(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) bool {
	q := w.queue.quota
	if a.Mode != quota.Preempting || w.Grows || q.Preemption == nil || len(d.state.asked) == 0 ||
		!w.mayPreemptFor(q.Lacking(a.Charges), d.state.fair()) || !d.maySearch(w) {
		return false
	}
	d.spend(w.queue, stepsPerCandidate*len(d.state.asked))
	from := d.releaseFrom(w, a, true)
	if from == nil {
		from = d.releaseFrom(w, a, false)
	}
	if from == nil {
		return false
	}
	a.Mode, a.Over, a.Level = quota.Within, nil, q.BorrowingLevel(a.Charges)
	started := d.startWithin(w, a, flavored, clusters)
	if !started || w.Asked != nil && w.Asked.NoQuota { // it takes none before its checks agree
		d.reserveAgain(from)
		return started
	}
	for _, o := range from {
		d.withdrawFor(w, o)
	}
	d.reopenAfter(from)
	return true
}

// releaseFrom releases quota of the last in line until the workload is within quota; nil if that
// does not suffice. Of other queues it is released, as in Kueue, only if the workload then does
// not borrow.
func (d *decision) releaseFrom(w *Waiting, a quota.Assess, others bool) (from []quotaVictim) {
	q := w.queue.quota
	enough := func() bool { return q.Fits(a.Charges) && !(others && q.Borrows(a.Charges)) }
	for _, o := range slices.Backward(slices.Clone(d.state.asked)) {
		of := q.Lacking(a.Charges)
		if len(of) == 0 {
			of = a.Charges // that it borrows
		}
		policy := withinQueue
		if o.queue != w.queue {
			policy = reclaimed
		}
		if !sharesAny(o, of) || policy == reclaimed && (!others || !q.MayReclaimFrom(o.queue.quota, of)) || !w.mayEvict(o.asStarted(), policy) {
			continue
		}
		w.class.tried(notHopeless) // more may be free later
		if d.askedNow(o) {
			w.class.retryBy(d.now.Add(leastRun))
			continue
		}
		d.state.releaseQuota(o)
		from = append(from, quotaVictim{o, policy})
		if enough() {
			return d.neededOf(from, enough)
		}
	}
	d.reserveAgain(from)
	return nil
}

// neededOf gives their quota back to those that are not needed, those first whose quota was
// released last. The very last is needed.
func (d *decision) neededOf(from []quotaVictim, enough func() bool) []quotaVictim {
	for i := len(from) - 2; i >= 0; i-- {
		if d.state.reserveQuota(from[i].Waiting); enough() {
			from = slices.Delete(from, i, i+1)
		} else {
			d.state.releaseQuota(from[i].Waiting)
		}
	}
	return from
}

// reserveAgain reverts releaseFrom.
func (d *decision) reserveAgain(from []quotaVictim) {
	for _, o := range from {
		d.state.reserveQuota(o.Waiting)
	}
}

// sharesAny reports whether a workload holds quota of what the charges are of.
func sharesAny(o *Waiting, charges []quota.Charge) bool {
	return slices.ContainsFunc(o.holds, func(held quota.Charge) bool {
		return slices.ContainsFunc(charges, func(c quota.Charge) bool { return c.FlavorResource == held.FlavorResource })
	})
}

// askedNow reports whether this decision has had the workload ask: it is not to withdraw that.
func (d *decision) askedNow(w *Waiting) bool {
	id := w.Workload.ID
	return slices.ContainsFunc(d.plan.Asks, func(a Ask) bool { return a.Workload == id }) ||
		slices.ContainsFunc(d.plan.Checks, func(c ToCheck) bool { return c.Workload == id })
}

// withdrawFor takes a workload out of the queue whose quota another one has.
func (d *decision) withdrawFor(w *Waiting, o quotaVictim) {
	id := o.Workload.ID
	d.state.removeWaiting(id)
	d.endKept(o.Waiting)
	d.plan.Waits = slices.DeleteFunc(d.plan.Waits, func(wait Wait) bool { return wait.Workload == id })
	d.plan.Withdrawals = append(d.plan.Withdrawals, Wait{id, workload.Reason{
		Kind: workload.ReasonPreempted,
		Message: fmt.Sprintf("its quota was taken back to accommodate %s with priority %d (policy %s); what it waited for is withdrawn",
			nameFor(o.Workload, w.Workload), w.Workload.Priority, o.policy),
		Foreign:    foreign(o.Workload, w.Workload),
		Preemption: &workload.PreemptionCause{Preemptor: w.Workload.ID, Policy: o.policy},
	}})
}

// reopenAfter reopens the classes that what is left over may help.
func (d *decision) reopenAfter(from []quotaVictim) {
	shown := slices.ContainsFunc(from, func(o quotaVictim) bool { return o.Asked.Placeholders })
	for _, q := range d.state.sorted {
		by := concerns(0)
		switch {
		case shown && q.quota.ShowsPlaceholders():
			by = always
		case q.quota.SameTree(from[0].queue.quota):
			by = anyRoom | moreQuota
		}
		for _, class := range q.blocked.among(firstRanks{all: true}, by) {
			if by == always || class.triedPreemption || class.mayFitQuota() {
				d.state.reopen(class)
			}
		}
	}
}
