package admission

import (
	"cmp"
	"slices"
)

// askDeferred has gangs show themselves that had left their turn to others, those with the fewest
// failures first, then in order. The others are tried again, and wait for theirs. It reports
// whether there were any.
func (d *decision) askDeferred() bool {
	all := d.deferred
	d.deferred = nil
	slices.SortStableFunc(all, func(a, b deferredAsk) int { return cmp.Or(cmp.Compare(a.w.Failures, b.w.Failures), before(a.w, b.w)) })
	for _, t := range all {
		if !d.state.waiting.Has(t.w) || t.w.class == nil {
			continue // it was admitted
		}
		if d.state.shownIn(t.ask.Cluster) == nil && t.w.queue.quota.Over(t.a.Charges) == nil {
			d.askFor(t.w, t.a, true, t.ask)
			continue
		}
		d.state.reopen(t.w.class)
	}
	return len(all) > 0
}
