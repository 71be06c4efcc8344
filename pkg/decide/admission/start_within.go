package admission

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// startWithin does for a workload within quota what can be done under one assignment: it is
// admitted, put to its checks, asks for nodes, or has gangs evicted for places. It reports
// whether there was anything.
func (d *decision) startWithin(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) bool {
	if d.quotaKept(w, a) != nil {
		return false
	}
	clusters = d.state.offering(clusters, a.Flavors)
	why, kept := d.admitUnder(w, a, flavored, clusters)
	if kept {
		return false
	}
	if why == nil {
		return true
	}
	asked := d.ask(w, a, flavored, clusters, why)
	if asked == nil {
		return true
	}
	if putsOff(asked, why) {
		return false
	}
	if d.isDeferred(w) { // its turn comes when others have had theirs
		d.deferred = d.deferred[:len(d.deferred)-1]
		return false
	}
	return d.preempt(w, a, flavored)
}

// admitUnder admits the workload under an assignment that is within quota, in one of the clusters
// that offer it, or returns why it has no places; kept means that it has some that are kept for a gang that shows itself.
func (d *decision) admitUnder(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) (why *workload.Reason, kept bool) {
	var keptIn *workload.Reason
	for {
		cluster, placements, why := d.fit(w, a, flavored, clusters)
		if why == nil && d.constrained(w, cluster) {
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
