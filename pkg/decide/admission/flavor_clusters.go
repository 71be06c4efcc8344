package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// offering returns, of these clusters, those that offer all of the flavors, in their order.
func (s *State) offering(clusters []string, flavors []workload.PodSetFlavors) []string {
	if !s.tree.ChoosesFlavors() {
		return clusters
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(cluster string) bool { return s.tree.NotOffered(cluster, flavors) != "" })
}

// whyNotOffered returns that a cluster does not offer one of the flavors; empty when it offers
// all.
func (s *State) whyNotOffered(cluster string, flavors []workload.PodSetFlavors) string {
	if flavor := s.tree.NotOffered(cluster, flavors); flavor != "" {
		return fmt.Sprintf("cluster %q does not offer flavor %q", cluster, flavor)
	}
	return ""
}

// prefers reports whether the workload prefers some clusters, and this is one of them: all of its
// pod sets that prefer any prefer this one.
func (s *State) prefers(w *Waiting, cluster string) bool {
	preferred := false
	for i := range w.Workload.PodSets {
		if selector := w.Workload.PodSets[i].PreferClusters; selector != "" {
			if !s.tree.Selects(selector, cluster) {
				return false
			}
			preferred = true
		}
	}
	return preferred
}
