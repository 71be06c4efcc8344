package admission

import (
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// start admits the workload or evicts gangs for it; it returns why it can do neither.
//
// It tries the assignments in the order of the queue's fungibility, and goes on to the
// next one also when an assignment is within quota but has no places: quota is a
// permission, not capacity.
func (d *decision) start(w *Waiting) *workload.Reason {
	d.trying = trying{queue: w.queue}
	d.keepForAskers(w)
	o := d.state.optionsOf(w.queue, w.signature)
	class := w.class
	var t tried
	defer func() { class.unplaced = t.unplaced }()
	clusters := d.state.clustersFor(w)
	if w.Grows && len(clusters) == 0 {
		return d.state.noGrowth(w)
	}
	class.triedAgain()
	if why := d.state.noKind(w); why != nil {
		return why
	}
	if o.why != nil {
		return o.why
	}
	for _, a := range d.assess(w, o) {
		if d.startUnder(w, a, o, clusters, &t) {
			return nil
		}
		if d.isDeferred(w) {
			return t.reason()
		}
	}
	if d.makeRoomInAny(w, o, t.rest, clusters) {
		return nil
	}
	// A search for all pods that was cut is repeated within seconds. The protection of
	// gangs may last for hours, so nothing waits for its end that can start smaller.
	if w.signature.least != nil && !class.cut && d.startSmaller(w, clusters, &t) {
		return nil
	}
	if t.kept && !class.triedPreemption { // until usage permits it
		class.tried(notHopeless)
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
	clusters = d.state.offering(clusters, a.Flavors)
	if a.Mode == quota.Within {
		why, kept := d.admitUnder(w, a, flavored, clusters)
		if kept {
			t.missed(a, flavored, clusters, why) // nothing is evicted for it, it fits
			return false
		}
		lacks := why
		if why != nil {
			why = d.ask(w, a, flavored, clusters, why)
		}
		if why == nil {
			return true
		}
		t.missed(a, flavored, clusters, why)
		if d.isDeferred(w) || putsOff(why, lacks) {
			return false
		}
	} else {
		w.class.exceeds(overQuota{a.Over.Charge, a.Charges})
		if t.over == nil {
			t.over = a.Over.Reason()
		}
	}
	switch {
	case a.Mode == quota.Impossible:
	case !w.queue.quota.StopsWhenPreempting() && (a.Mode == quota.Within || !w.queue.quota.PrefersNearer()):
		t.rest = append(t.rest, a)
	default:
		return d.makeRoom(w, a, flavored, clusters)
	}
	return false
}

// makeRoom takes back quota for the workload, or has gangs evicted for it; it reports whether
// it did.
func (d *decision) makeRoom(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) bool {
	return d.preemptQuota(w, a, flavored, clusters) || d.preempt(w, a, flavored)
}

// makeRoomInAny is makeRoom under the assignment that choiceOfRoom chooses.
func (d *decision) makeRoomInAny(w *Waiting, o *flavorOptions, assessed []quota.Assess, clusters []string) bool {
	var room choiceOfRoom
	for _, a := range assessed {
		flavored := o.flavoredFor(a)
		if d.preemptQuota(w, a, flavored, clusters) {
			return true
		}
		if room.consider(d.roomBy(w, a, flavored)) {
			break
		}
	}
	chosen := room.chosen(w)
	if chosen == nil {
		return false
	}
	d.evictUnder(w, chosen.assess, chosen.nomination, chosen.victims)
	return true
}
