package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// start admits the workload or evicts gangs for it; it returns why it can do neither.
//
// It tries the assignments in the order of the queue's fungibility, and goes on to the
// next one also when an assignment is within quota but has no places: quota is a
// permission, not capacity.
func (d *decision) start(w *Waiting) *workload.Reason {
	o := d.state.optionsOf(w.queue, w.signature)
	class := w.class
	var t tried
	defer func() { class.unplaced = t.unplaced }()
	clusters := d.state.clustersFor(w)
	if w.Grows && len(clusters) == 0 {
		return d.state.noGrowth(w)
	}
	class.overQuota, class.triedPreemption, class.cut = nil, false, false
	if why := d.state.noKind(w); why != nil {
		return why
	}
	if o.why != nil {
		return o.why
	}
	for _, a := range w.queue.quota.Assess(o.assignments) {
		if d.startUnder(w, a, o, clusters, &t) {
			return nil
		}
		if d.isDeferred(w) {
			return t.reason()
		}
	}
	for _, a := range t.rest {
		if d.preempt(w, a, o.flavoredFor(a)) {
			return nil
		}
	}
	// A search for all pods that was cut is repeated within seconds. The protection of
	// gangs may last for hours, so nothing waits for its end that can start smaller.
	if w.signature.least != nil && !class.cut && d.startSmaller(w, clusters, &t) {
		return nil
	}
	if t.kept && !class.triedPreemption { // until usage permits it
		class.triedPreemption, class.hopelessAt = true, notHopeless
	}
	return t.reason()
}

// startUnder tries one assignment. It reports whether the workload was admitted, asks for
// nodes, or has gangs evicted for it.
func (d *decision) startUnder(w *Waiting, a quota.Assess, o *flavorOptions, clusters []string, t *tried) bool {
	if why := d.state.flavorConflict(w, a); why != nil {
		t.over = why
		return false
	}
	if why := d.quotaKept(w, a); why != nil {
		t.over, t.kept = why, true
		return false
	}
	flavored := o.flavoredFor(a)
	if a.Mode == quota.Within {
		why, kept := d.admitUnder(w, a, flavored, clusters)
		if kept {
			t.missed(flavored, why) // nothing is evicted for it, it fits
			return false
		}
		if why != nil {
			why = d.ask(w, a, flavored, clusters, why)
		}
		if why == nil {
			return true
		}
		t.missed(flavored, why)
		if d.isDeferred(w) {
			return false
		}
	} else {
		w.class.overQuota = append(w.class.overQuota, a.Over.Charge)
		if t.over == nil {
			t.over = a.Over.Reason()
		}
	}
	switch {
	case a.Mode == quota.Impossible:
	case !w.queue.quota.StopsWhenPreempting() && (a.Mode == quota.Within || !w.queue.quota.PrefersNearer()):
		t.rest = append(t.rest, a)
	default:
		return d.preempt(w, a, flavored)
	}
	return false
}

// admitUnder admits the workload under an assignment that is within quota, or returns why
// it has no places; kept says that it has some that are kept for a gang that shows itself.
func (d *decision) admitUnder(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) (why *workload.Reason, kept bool) {
	var keptIn *workload.Reason
	for {
		cluster, placements, why := d.fit(w, flavored, clusters)
		if why == nil && d.constrained(w) {
			cluster, placements, why = d.backfill(w, flavored, clusters)
		}
		if why == nil {
			why = d.topologyConflict(w, placements)
		}
		if why != nil {
			return cmp.Or(keptIn, why), keptIn != nil
		}
		if why := d.keptForShown(w, flavored, cluster, placements); why != nil { // in another cluster no gang may be shown
			keptIn = cmp.Or(keptIn, why)
			clusters = slices.DeleteFunc(slices.Clone(clusters), func(c string) bool { return c == cluster })
			continue
		}
		if !d.putToChecks(w, a, true) {
			d.admit(w, a, flavored, cluster, placements)
		}
		return nil, false
	}
}
