package admission

import (
	"fmt"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// clusters returns for each cluster with nodes why the workload does not start there: the
// cluster does not take it, or it has no room, or only something else than room lacks.
func (e *explainer) clusters() {
	var names []string
	for _, name := range e.s.clusters {
		if e.s.fleets[name].Len() > 0 {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return // the reason is that of the one cluster
	}
	flavored := e.nearest()
	for _, name := range names {
		if e.enough() {
			e.found.Partial = true
			return
		}
		why := workload.ClusterReason{Cluster: name, Foreign: e.s.isForeign(e.w, name)}
		home := e.w.Workload.Home()
		switch barred := e.s.barred(e.w, name); {
		case home != "" && home != name:
			why.Message = fmt.Sprintf("the object is in cluster %q, and the gang runs there or waits", home)
		case barred != "":
			why.Message = barred
		case flavored == nil:
			why.Open, why.Message = true, "its queue gives it no flavors: "+e.found.Reason.Message
		default:
			why.Open, why.Message = true, e.roomIn(name, flavored)
		}
		e.found.Clusters = append(e.found.Clusters, why)
	}
}

// nearest returns what is to be placed under the first assignment, of those within quota if
// there are any; nil without any.
func (e *explainer) nearest() *flavoredSignature {
	o := e.s.optionsOf(e.w.queue, e.w.signature)
	assessed := e.w.queue.quota.Assess(o.assignments)
	for _, a := range assessed {
		if a.Mode == quota.Within {
			return o.flavoredFor(a)
		}
	}
	if len(assessed) > 0 {
		return o.flavoredFor(assessed[0])
	}
	return nil
}

// roomIn returns what the nodes of a cluster lack. The steps of its search are no queue's.
func (e *explainer) roomIn(cluster string, flavored *flavoredSignature) string {
	verdict := e.s.fleets[cluster].Solve(flavored.w, placement.Budget)
	if verdict.Outcome == placement.Fits {
		return "there is room for all pods; it waits for something else: " + e.found.Reason.Message
	}
	return verdict.Reason().Message
}
