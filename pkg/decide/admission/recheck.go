package admission

import "slices"

// recheckNamespaces holds the waiting workloads whose namespace is not selected any more, and
// lets those go whose namespace now is. It looks at all that wait: labels that matter to a
// queue change rarely.
func (d *decision) recheckNamespaces() {
	s := d.state
	if !s.events.namespaces {
		return
	}
	var changed []*Waiting
	for w := range s.waiting.All() {
		if w.queue.quota.Selector() == nil {
			continue
		}
		n := w.nomination(s)
		if !bothHeld(w.held, s.heldBy(w)) || n != nil && !s.mayUse(w.queue, w.Workload.Namespace, n.cluster) {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, before)
	for _, w := range changed {
		again := w.resubmitted(s)
		again.Reported, again.Nominated = false, false
		s.Enqueue(again)
	}
	d.withdrawReleased(changed)
}

// recheckRanges holds the waiting workloads whose pods LimitRanges do not allow any more, and
// lets those go whose pods they now do. It looks at all that wait in the namespaces of these
// LimitRanges.
func (d *decision) recheckRanges() {
	s := d.state
	if !s.events.ranges.any() {
		return
	}
	var changed []*Waiting
	for w := range s.waiting.All() {
		if !s.events.ranges.has(w.Workload.Namespace) {
			continue
		}
		beyond := s.beyond(w)
		if len(beyond)+len(w.beyond) == 0 {
			continue
		}
		s.events.ranges.matter = true
		if !slices.Equal(beyond, w.beyond) || !bothHeld(w.held, s.heldBy(w)) {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, before)
	for _, w := range changed {
		again := w.resubmitted(s)
		again.Reported = false
		if n := w.nomination(s); n != nil { // it is tried first again, unless its cluster refuses it now
			again.Nominated = !slices.Contains(s.beyond(w), n.cluster)
		}
		s.Enqueue(again)
	}
	d.withdrawReleased(changed)
}

// endBudgetStops lets those go that were held by budgets of a period that is over.
func (d *decision) endBudgetStops() {
	s := d.state
	if !s.tree.EndBudgetStops(d.now) {
		return
	}
	var changed []*Waiting
	for w := range s.waiting.All() {
		if !bothHeld(w.held, s.heldBy(w)) {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, before)
	for _, w := range changed {
		again := w.resubmitted(s)
		again.Reported = false
		s.Enqueue(again)
	}
	d.withdrawReleased(changed)
}

// withdrawReleased withdraws what workloads wait for that were held and are no more, where others
// have taken their quota meanwhile: from the last in line on.
func (d *decision) withdrawReleased(changed []*Waiting) {
	for _, w := range slices.Backward(changed) { // when all have their charges
		if again := d.state.waiting.Get(w.Workload.ID); w.held != nil && again.Asked != nil {
			d.withdrawOver(again, "it was held, and others have its quota now")
		}
	}
}

// recheckDefaults has waiting workloads ask for what their namespaces now have by default.
// So do those that hold quota while they wait for nodes or checks: a new leader takes their
// quota before it reads the defaults. Where all of them hold more than the queue may use, the
// last in line give it up. Those with a nomination start with what is reserved for them.
func (d *decision) recheckDefaults() {
	s := d.state
	if !s.events.defaults {
		return
	}
	var changed []*Waiting
	for w := range s.waiting.All() {
		if _, differs := s.withDefaults(w); differs && w.nomination(s) == nil {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, before)
	for _, w := range changed {
		again := w.resubmitted(s)
		again.Reported = w.Asked != nil && w.Reported // which waits for the same as before
		s.Enqueue(again)
	}
	for _, w := range slices.Backward(changed) { // when all have their charges
		if w.Asked != nil {
			d.withdrawOver(s.waiting.Get(w.Workload.ID), "its namespace has larger default requests now")
		}
	}
}

// withdrawOver removes a workload that holds quota while it waits from its queue, if that is more
// than the queue may use: the caller withdraws what it waits for.
func (d *decision) withdrawOver(w *Waiting, because string) {
	if w.holds == nil {
		return // it is held, or holds no quota
	}
	of, charges := w.queue.quota, w.holds
	of.Release(charges)
	over := of.Over(charges)
	of.Allocate(charges)
	if over == nil {
		return
	}
	why := over.Reason()
	why.Message = because + ", so what it waited for is withdrawn: " + why.Message
	d.state.removeWaiting(w.Workload.ID)
	d.plan.Withdrawals = append(d.plan.Withdrawals, Wait{w.Workload.ID, *why})
}
