package admission

import (
	"muster.dev/muster/pkg/decide/placement"
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
	if o.why != nil {
		return o.why
	}
	for _, a := range w.queue.quota.Assess(o.assignments) {
		if d.startUnder(w, a, o, clusters, &t) {
			return nil
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

// tried is what the assignments of a workload that were tried have come to.
type tried struct {
	noPlace  *workload.Reason   // of the assignment within quota that lacks least
	over     *workload.Reason   // why an assignment is not within quota, or not allowed
	kept     bool               // quota is kept for others
	unplaced *flavoredSignature // the first within quota that has no places
	rest     []quota.Assess     // where evictions are tried when all have been tried without
}

// missed notes that an assignment within quota has no places.
func (t *tried) missed(flavored *flavoredSignature, why *workload.Reason) {
	if t.unplaced == nil {
		t.unplaced = flavored
	}
	if t.noPlace == nil || nearer(*why, *t.noPlace) {
		t.noPlace = why
	}
}

// reason returns why nothing was started.
func (t *tried) reason() *workload.Reason {
	switch {
	case t.noPlace != nil:
		return t.noPlace
	case t.over != nil:
		return t.over
	}
	return &workload.Reason{Kind: workload.ReasonInvalid, Message: "the workload has no pods"}
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
		why := d.admitUnder(w, a, flavored, clusters)
		if why == nil || d.ask(w, a, flavored, clusters, why) {
			return true
		}
		t.missed(flavored, why)
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
// it has no places.
func (d *decision) admitUnder(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) *workload.Reason {
	cluster, placements, why := d.fit(w, flavored, clusters)
	if why == nil && d.constrained(w) {
		cluster, placements, why = d.backfill(w, flavored)
	}
	if why == nil {
		why = d.topologyConflict(w, placements)
	}
	if why == nil && !d.putToChecks(w, a, true) {
		d.admit(w, a, flavored, cluster, placements)
	}
	return why
}

// flavoredFor returns what is to be placed under the assignment.
func (o *flavorOptions) flavoredFor(a quota.Assess) *flavoredSignature {
	for i := range o.assignments {
		if &o.assignments[i] == a.Assignment {
			return o.flavored[i]
		}
	}
	return nil
}

// fit looks for places on one cluster after the other, the cheapest first, and among
// equally cheap ones with room chooses. When there are none it returns the reason of the
// cluster that lacks least. A cluster with a verdict that is still valid is not searched
// again.
func (d *decision) fit(w *Waiting, flavored *flavoredSignature, clusters []string) (cluster string, placements []workload.Placement, why *workload.Reason) {
	why = d.state.noCluster(w)
	var best choice
	for _, cluster := range clusters {
		fleet := d.state.fleets[cluster]
		if fleet.Len() == 0 {
			continue
		}
		cost := d.state.cost(w, cluster)
		if best.ends(cost) {
			break
		}
		verdict, known := flavored.verdicts[cluster]
		if !known {
			var cut bool
			verdict, cut = d.solve(w.queue, fleet, flavored.w)
			if verdict.Outcome == placement.Fits {
				best.consider(cluster, fleet, flavored.w, verdict.Placements, cost, len(clusters) == 1)
				continue
			}
			if cut {
				why = d.retryWhenAllowed(w.class)
				continue
			}
			if !flavored.transient {
				flavored.verdicts[cluster] = verdict
				fleet.AddUnschedulable(flavored.key, flavored.w, verdict)
			}
		}
		if reason := verdict.Reason(); nearer(*reason, *why) {
			why = reason
		}
	}
	if best.compared > 0 {
		return best.cluster, best.places, nil
	}
	return "", nil, d.state.beside(w, why)
}

// admit starts the workload in the sizes of what has been placed.
func (d *decision) admit(w *Waiting, a quota.Assess, placed *flavoredSignature, cluster string, placements []workload.Placement) {
	if w.Grows {
		d.grow(w, a, placements)
		return
	}
	s := d.state
	admitted, sets := w.Workload, placed.sizesOf(w.Workload)
	if sets != nil {
		smaller := *w.Workload
		smaller.PodSets = sets
		admitted = &smaller
	}
	if sets == nil && w.defaulted {
		sets = w.Workload.PodSets
	}
	d.plan.Admissions = append(d.plan.Admissions, Admission{w.Workload.ID, cluster, placements, a.Flavors, sets})
	s.removeFromClass(w)
	s.Start(Started{
		Workload: admitted, Order: w.Order, Queue: w.queue.name,
		Cluster: cluster, Placements: placements, Flavors: a.Flavors, Admitted: d.now,
		RunTime: w.RunTime,
	})
	g := s.started[w.Workload.ID]
	d.noteEntry(g, g.charges)
	d.noteStarted(w, g, placements)
	s.waiting.Delete(w.Workload.ID)
	s.removeDemand(w)
	s.dropSignature(w.signature)
	d.noteUsage(w.queue, a)
}
