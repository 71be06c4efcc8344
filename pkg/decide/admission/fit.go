package admission

import (
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// tried is what the assignments of a workload that were tried have come to.
type tried struct {
	noPlace  *workload.Reason // of the assignment within quota that lacks least
	over     *workload.Reason // why an assignment is not within quota, or not allowed
	kept     bool             // quota is kept for others
	unplaced unplaced         // the first within quota that has no places
	rest     []quota.Assess   // where evictions are tried when all have been tried without
	// unofferedOnly: no cluster offers unplaced, so that any other one is better.
	unofferedOnly bool
}

// missed notes that an assignment within quota has no places in the clusters that offer it.
func (t *tried) missed(a quota.Assess, flavored *flavoredSignature, clusters []string, why *workload.Reason) {
	if t.unplaced.flavoredSignature == nil || t.unofferedOnly && len(clusters) > 0 {
		t.unplaced, t.unofferedOnly = unplaced{flavored, a.Flavors}, len(clusters) == 0
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

// flavoredFor returns what is to be placed under the assignment.
func (o *flavorOptions) flavoredFor(a quota.Assess) *flavoredSignature {
	for i := range o.assignments {
		if &o.assignments[i] == a.Assignment {
			return o.flavored[i]
		}
	}
	return nil
}

// fit looks for places on one cluster after the other, those that the workload prefers first
// and of these the cheapest, and among equally good ones with room chooses. When there are none it returns the reason of the
// cluster that lacks least. A cluster with a verdict that is still valid is not searched
// again.
func (d *decision) fit(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string) (cluster string, placements []workload.Placement, why *workload.Reason) {
	why = d.state.noCluster(w, a.Flavors)
	var best choice
	for _, cluster := range clusters {
		fleet := d.state.fleets[cluster]
		if fleet.Len() == 0 {
			continue
		}
		rank := d.state.rank(w, cluster)
		if best.ends(rank) {
			break
		}
		verdict, known := flavored.verdicts[cluster]
		if !known {
			var cut bool
			verdict, cut = d.solve(w.queue, fleet, flavored.w)
			if verdict.Outcome == placement.Fits {
				best.consider(cluster, fleet, flavored.w, verdict.Placements, rank, len(clusters) == 1)
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
	return "", nil, d.state.withBarred(w, a.Flavors, why)
}
