package admission

import (
	"fmt"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// keepsQuota reports whether quota is kept for the waiting head of the queue. As in Kueue
// that is so where no gang passes the head and the queue cannot be sure to reclaim what
// others borrow meanwhile.
func (q *queue) keepsQuota() bool {
	p := q.quota.Preemption
	return q.strict() && q.quota.Cohort != "" && (p == nil || p.ReclaimWithinCohort != quota.Any)
}

// keptFor returns what is kept of quota for the head of the queue, nil for nothing: for a
// head that waits for quota that it could have.
func (d *decision) keptFor(q *queue) []quota.Charge {
	if !q.keepsQuota() || q.nominations > 0 || q.all.Len() == 0 || q.all.list[0].atOpen >= 0 {
		return nil
	}
	o := d.state.optionsOf(q, q.all.list[0].signature.smallest())
	if len(o.assignments) == 0 {
		return nil
	}
	a := q.quota.Assess(o.assignments)[0]
	if a.Mode != quota.Preempting {
		return nil
	}
	return q.quota.Reservable(a)
}

// quotaKept returns why the workload may not borrow what is kept for heads of other queues
// that are tried before it, nil if it may. What is within its own quota it always gets.
func (d *decision) quotaKept(w *Waiting, a quota.Assess) *workload.Reason {
	if a.Level == 0 || a.Mode != quota.Within {
		return nil
	}
	kept := map[*queue][]quota.Charge{}
	var head *Waiting
	for _, q := range d.state.sorted {
		if q == w.queue || !q.keepsQuota() || !q.quota.SameTree(w.queue.quota) {
			continue
		}
		if charges := d.keptFor(q); len(charges) > 0 && d.firstOf([]*equivalenceClass{w.class, q.all.list[0]}) != w.class {
			kept[q], head = charges, q.head()
		}
	}
	if head == nil {
		return nil
	}
	before := d.state.tree.Begin()
	defer d.state.tree.Rollback(before)
	for q, charges := range kept { // usage is a sum, so the order does not matter
		q.quota.Allocate(charges)
	}
	if w.queue.quota.Fits(a.Charges) {
		return nil
	}
	why := w.queue.quota.Over(a.Charges).Reason()
	why.Message = fmt.Sprintf("unused quota for %s in flavor %q is kept for %s, the head of a queue (%s) that may not take it back from the cohort",
		why.Quota.Resource, why.Quota.Flavor, nameFor(w.Workload, head.Workload), quota.StrictFIFO)
	why.Foreign = foreign(w.Workload, head.Workload)
	return why
}

// noteKept notes that quota is kept for another head than before.
func (d *decision) noteKept(q *queue) {
	if head := q.head(); q.keepsQuota() && q.kept != head {
		q.kept = head
		d.effects.usageGrew = true
	}
}
