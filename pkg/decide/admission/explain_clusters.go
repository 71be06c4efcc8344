package admission

import (
	"fmt"
	"slices"

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
	assessed := e.byNearness()
	for _, name := range names {
		if e.enough() {
			e.found.Partial = true
			return
		}
		why := workload.ClusterReason{Cluster: name, Foreign: e.s.isForeign(e.w, name), Preferred: e.s.prefers(e.w, name)}
		home := e.w.Workload.Home()
		switch barred := e.s.barred(e.w, name); {
		case home != "" && home != name:
			why.Message = fmt.Sprintf("the object is in cluster %q, and the gang runs there or waits", home)
		case barred != "":
			why.Message = barred
		case len(assessed) == 0:
			why.Open, why.Message = true, "its queue gives it no flavors: "+e.found.Reason.Message
		default:
			why.Open, why.Message = e.under(name, assessed)
		}
		e.found.Clusters = append(e.found.Clusters, why)
	}
}

// byNearness returns the assignments in their order, those within quota first.
func (e *explainer) byNearness() []quota.Assess {
	assessed := e.w.queue.quota.Assess(e.s.optionsOf(e.w.queue, e.w.signature).assignments)
	slices.SortStableFunc(assessed, func(a, b quota.Assess) int {
		if (a.Mode == quota.Within) == (b.Mode == quota.Within) {
			return 0
		}
		if a.Mode == quota.Within {
			return -1
		}
		return 1
	})
	return assessed
}

// under returns what a cluster lacks under the first of the assignments that it offers, and
// whether there is one.
func (e *explainer) under(cluster string, assessed []quota.Assess) (offers bool, why string) {
	for _, a := range assessed {
		if e.s.tree.NotOffered(cluster, a.Flavors) == "" {
			return true, e.roomIn(cluster, e.s.optionsOf(e.w.queue, e.w.signature).flavoredFor(a))
		}
	}
	return false, e.s.whyNotOffered(cluster, assessed[0].Flavors)
}

// roomIn returns what the nodes of a cluster lack. The steps of its search are no queue's.
func (e *explainer) roomIn(cluster string, flavored *flavoredSignature) string {
	verdict := e.s.fleets[cluster].Solve(flavored.w, placement.Budget)
	if verdict.Outcome == placement.Fits {
		return "there is room for all pods; it waits for something else: " + e.found.Reason.Message
	}
	return verdict.Reason().Message
}
