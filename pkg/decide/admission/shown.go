package admission

import (
	"fmt"
	"slices"

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

// waitsToBeShown is why a gang waits that would show itself if no other did.
func waitsToBeShown(why *workload.Reason, cluster string) *workload.Reason {
	waits := *why
	waits.Message += fmt.Sprintf("; it is shown as placeholder pods when no other gang is in cluster %s", cluster)
	return &waits
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
