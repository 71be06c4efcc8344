package admission

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Ask is the decision to ask for nodes.
type Ask struct {
	Workload workload.ID
	Cluster  string
	Check    string
	Flavors  []workload.PodSetFlavors
	// Pods are those that lack a place.
	Pods []workload.PodCount
}

// ask asks for the nodes that the workload lacks, for want of which it waits, and returns nil
// when it did. From then on the workload holds the quota of the assignment.
func (d *decision) ask(w *Waiting, a quota.Assess, flavored *flavoredSignature, clusters []string, why *workload.Reason) *workload.Reason {
	if w.Grows || !nodesMayHelp(why.Kind) && why != d.keptWhy {
		return why
	}
	check := w.queue.quota.Provisioning(a.Flavors)
	if check == nil || triedFlavors(w.Tried, a.Flavors) {
		return why
	}
	var shown []string // clusters in which another gang is shown
	for _, cluster := range clusters {
		if !d.state.mayAskIn(cluster) || triedCluster(w.TriedClusters, cluster, a.Flavors) {
			continue
		}
		cutBefore := d.state.searched.Cut
		pods := d.lackingAfterRequests(w, cluster, flavored.w, check)
		if d.state.searched.Cut > cutBefore && d.retryWhenFull(w.class) {
			return searchPutOff() // fewer may lack a place
		}
		if len(pods) == 0 {
			continue // what it lacks is nothing that the check asks for
		}
		if check.Config.NodeLabels() != nil { // all pods of a set choose the same nodes
			pods = wholeSets(flavored.w, pods)
		}
		if check.Placeholders() {
			if d.state.shownIn(cluster) != nil {
				shown = append(shown, cluster)
				continue
			}
			pods = managedPods(flavored.w, check)
			if d.defers(w, cluster) {
				d.deferred = append(d.deferred, deferredAsk{w, a, Ask{Workload: w.Workload.ID, Cluster: cluster, Check: check.Check, Flavors: a.Flavors, Pods: pods}})
				return why
			}
		}
		d.askFor(w, a, check.Placeholders(), Ask{Workload: w.Workload.ID, Cluster: cluster, Check: check.Check, Flavors: a.Flavors, Pods: pods})
		return nil
	}
	return waitsToBeShown(why, shown)
}

// putsOff reports whether this answer of ask to what the workload lacks means that ask does not know
// yet for how many pods nodes are needed: until then no gang is evicted for their places.
func putsOff(answer, lacks *workload.Reason) bool {
	return answer.Kind == workload.ReasonUnknown && lacks.Kind != workload.ReasonUnknown
}

// wholeSets are all pods of the pod sets that lack places.
func wholeSets(w *workload.Workload, lacking []workload.PodCount) (pods []workload.PodCount) {
	for _, l := range lacking {
		i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == l.PodSet })
		pods = append(pods, workload.PodCount{PodSet: l.PodSet, Pods: w.PodSets[i].Count})
	}
	return pods
}

// nodesMayHelp reports whether a workload that waits so may lack nothing but nodes. A cluster
// may have none at all.
func nodesMayHelp(kind workload.ReasonKind) bool {
	return kind == workload.ReasonFit || kind == workload.ReasonTopology || kind == workload.ReasonNoNodes
}

// askFor asks for nodes, once the checks of the queue have agreed.
func (d *decision) askFor(w *Waiting, a quota.Assess, placeholders bool, ask Ask) {
	if d.putToChecks(w, a, true) {
		return
	}
	d.state.removeFromClass(w)
	w.Asked = &Asked{Cluster: ask.Cluster, Flavors: a.Flavors, Pods: ask.Pods, Since: d.now, Placeholders: placeholders}
	d.state.reserveQuota(w)
	d.noteUsage(w.queue, a)
	d.noteHeld(w)
	d.plan.Asks = append(d.plan.Asks, ask)
	d.wait(w, AskedReason(ask.Cluster, ask.Check, ask.Pods, placeholders, w.TriedClusters))
	w.Reported = true
}

// lackingAfterRequests counts the pods without a place when gangs with requests in the cluster
// have theirs: two requests would else count on the same free place, and one of the gangs would
// find that its nodes are too few.
func (d *decision) lackingAfterRequests(w *Waiting, cluster string, of *workload.Workload, check *quota.Provisioning) []workload.PodCount {
	d.findKept()
	fleet, counted := d.state.fleets[cluster], 0
	savepoint := fleet.Begin()
	defer fleet.Rollback(savepoint)
	for _, o := range d.state.asked {
		if o.Asked.Cluster != cluster || o.Asked.Placeholders || counted == mostCounted {
			continue
		}
		part := d.keptPartOf(o)
		if part != nil { // of nodes, too, that have come for it
			fleet.Allocate(part.placed, part.places)
		}
		has := &workload.Workload{PodSets: slices.DeleteFunc(d.state.tree.Effective(o.placed(), o.Asked.Flavors), func(set workload.PodSet) bool { return set.Count == 0 })}
		if part == nil && len(has.PodSets) == 0 {
			continue
		}
		counted++
		if part != nil && o.Asked.Ready || len(has.PodSets) == 0 { // all pods are counted
			continue
		}
		if verdict, _ := d.solve(w.queue, fleet, has); verdict.Outcome == placement.Fits {
			fleet.Allocate(has, verdict.Placements)
		}
	}
	lacking, _ := d.lackingPods(w.queue, fleet, of, check)
	return lacking
}

// lackingPods counts the pods without a place, of the pod sets that the check asks for. A set
// that has to stay together lacks all or none.
func (d *decision) lackingPods(q *queue, fleet *placement.Fleet, w *workload.Workload, check *quota.Provisioning) (lacking []workload.PodCount, found answered) {
	sets, found := d.mostPlaced(q, fleet, w, false)
	for i := range sets {
		if pods := w.PodSets[i].Count - sets[i].Count; pods > 0 && check.Manages(&w.PodSets[i]) {
			lacking = append(lacking, workload.PodCount{PodSet: sets[i].Name, Pods: pods})
		}
	}
	return lacking, found
}

// AskedReason is why a workload waits that has asked for nodes: for these pods, in a cluster,
// by an AdmissionCheck, or by showing itself as these pods. tried are clusters in which it did
// before, in vain.
func AskedReason(cluster, check string, pods []workload.PodCount, placeholders bool, tried []workload.TriedCluster) *workload.Reason {
	of := make([]string, len(pods))
	for i, p := range pods {
		of[i] = fmt.Sprintf("%d of %s", p.Pods, p.PodSet)
	}
	message := "nodes for %s pods are asked for in cluster %s (AdmissionCheck %q); its quota is reserved"
	if placeholders {
		message = "%s pods are shown as placeholders in cluster %s, for which an autoscaler may add nodes (AdmissionCheck %q); its quota is reserved"
	}
	return &workload.Reason{Kind: workload.ReasonProvisioning, Message: fmt.Sprintf(message, strings.Join(of, " and "), cluster, check) + AfterTried(tried)}
}

// AfterTried ends the reason of a workload that has asked for nodes in other clusters before;
// empty for none.
func AfterTried(tried []workload.TriedCluster) string {
	if len(tried) == 0 {
		return ""
	}
	names := make([]string, len(tried))
	for i, t := range tried {
		names[i] = t.Cluster
	}
	return "; before that it asked in vain in " + namedClusters(names)
}
