package admission

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Where an autoscaler sees nothing but pending pods, one gang of a cluster at a time shows
// itself as pods: the autoscaler would give two gangs a part of their nodes each.

// shownIn returns the gang that shows itself in the cluster; nil for none.
func (s *State) shownIn(cluster string) *Waiting {
	i := slices.IndexFunc(s.asked, func(w *Waiting) bool { return w.Asked.Placeholders && w.Asked.Cluster == cluster })
	if i < 0 {
		return nil
	}
	return s.asked[i]
}

// endShown notes that a gang shows itself no longer, so that another may.
func (s *State) endShown(w *Waiting) {
	if w.Asked != nil && w.Asked.Placeholders {
		s.events.shownEnded = true
	}
}

// deferredAsk is of a gang that would show itself, and leaves that to one that has failed less often.
type deferredAsk struct {
	w   *Waiting
	a   quota.Assess
	ask Ask
}

// defers reports whether a gang that was shown in vain leaves its turn to others until the
// end of the decision: some that have failed less often may come. Without that, a few gangs that
// no node can serve would be shown in turns, and those behind them never.
func (d *decision) defers(w *Waiting, cluster string) bool {
	if slices.ContainsFunc(d.deferred, func(t deferredAsk) bool { return t.ask.Cluster == cluster && t.w.Failures < w.Failures }) {
		return true
	}
	for _, q := range d.state.sorted {
		if w.Failures == 0 || !q.quota.ShowsPlaceholders() {
			continue
		}
		for _, class := range q.open.list {
			if first := class.first(); first.Failures < w.Failures && !first.Grows && d.state.mayRunIn(first, cluster) {
				return true
			}
		}
	}
	return false
}

// isDeferred reports whether the workload has left its turn to others.
func (d *decision) isDeferred(w *Waiting) bool {
	return slices.ContainsFunc(d.deferred, func(t deferredAsk) bool { return t.w == w })
}

// mostShownNamed bounds the clusters that a reason names in which others are shown, or nodes were
// asked for.
const mostShownNamed = 3

// waitsToBeShown is why a gang waits that would show itself if no other did in these clusters.
func waitsToBeShown(why *workload.Reason, clusters []string) *workload.Reason {
	if len(clusters) == 0 {
		return why
	}
	waits := *why
	among := ""
	if len(clusters) > 1 {
		among = "one of the "
	}
	waits.Message += "; it is shown as placeholder pods when no other gang is in " + among + namedClusters(clusters)
	return &waits
}

// namedClusters names the first of some clusters.
func namedClusters(clusters []string) string {
	if len(clusters) == 1 {
		return "cluster " + clusters[0]
	}
	named := "clusters " + strings.Join(clusters[:min(mostShownNamed, len(clusters))], ", ")
	if more := len(clusters) - mostShownNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}

// managedPods are all pods of the sets that the check asks for. An autoscaler places pending
// pods on what is free before it adds nodes, so it has to see those pods, too, that have a place.
func managedPods(w *workload.Workload, check *quota.Provisioning) (pods []workload.PodCount) {
	for i := range w.PodSets {
		if set := &w.PodSets[i]; set.Count > 0 && check.Manages(set) {
			pods = append(pods, workload.PodCount{PodSet: set.Name, Pods: set.Count})
		}
	}
	return pods
}
