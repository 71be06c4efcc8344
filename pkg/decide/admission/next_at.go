package admission

import "time"

// nextAt returns the earliest time at which a class, a head, a back-off or a gang whose nodes have
// come is due.
func (d *decision) nextAt() time.Time {
	var next time.Time
	note := func(t time.Time) {
		if !t.IsZero() && t.After(d.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	note(d.state.askedAt)
	note(d.state.repeatAt)
	if len(d.state.backingOff) > 0 {
		note(d.state.backingOff[0].NotBefore)
	}
	for _, q := range d.state.sorted {
		note(q.blocked.nextAfter(d.now))
		if !q.strict() && q.all.Len() > 0 && !q.head().Since.IsZero() {
			note(q.head().patienceEnd())
		}
		if len(q.locals) > 1 && (q.strict() || q.reserves(d.now)) { // another may be the head by then
			note(d.now.Add(d.state.tree.SamplingInterval()))
		}
		if len(q.patient) > 0 {
			note(q.patient[0].patienceEnd())
		}
	}
	for i := range d.state.tree.BudgetStops() {
		note(d.state.tree.BudgetStops()[i].Until)
	}
	for i := range d.state.tree.Reservations() {
		r := &d.state.tree.Reservations()[i]
		note(r.From) // those that it is for come before every head then, and it may evict others
		note(r.Until)
	}
	for _, r := range d.state.reservations {
		if !r.start.IsZero() {
			note(r.start.Add(time.Second)) // a gang is over time then
		}
	}
	return next
}
