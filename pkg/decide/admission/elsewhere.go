package admission

import (
	"reflect"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

func triedFlavors(tried [][]workload.PodSetFlavors, flavors []workload.PodSetFlavors) bool {
	return slices.ContainsFunc(tried, func(t []workload.PodSetFlavors) bool { return reflect.DeepEqual(t, flavors) })
}

// HasOtherFlavors reports whether a waiting workload may be given other flavors than those.
func (s *State) HasOtherFlavors(id workload.ID, tried [][]workload.PodSetFlavors) bool {
	w := s.waiting.Get(id)
	if w == nil {
		return false
	}
	clusters := s.clustersFor(w)
	for _, a := range w.queue.quota.Assess(s.optionsOf(w.queue, w.signature).assignments) {
		unoffered := len(clusters) > 0 && len(s.offering(clusters, a.Flavors)) == 0
		if a.Mode != quota.Impossible && !unoffered && !triedFlavors(tried, a.Flavors) {
			return true
		}
	}
	return false
}

func triedCluster(tried []workload.TriedCluster, cluster string, flavors []workload.PodSetFlavors) bool {
	return slices.ContainsFunc(tried, func(t workload.TriedCluster) bool {
		return t.Cluster == cluster && reflect.DeepEqual(t.Flavors, flavors)
	})
}

// mayAskIn reports whether the nodes of a cluster are known, so that others can be asked for.
func (s *State) mayAskIn(cluster string) bool {
	return s.fleets[cluster].Len() > 0 || s.listed[cluster]
}

// HasOtherCluster reports whether a waiting workload may ask by the flavors in other clusters than
// those.
func (s *State) HasOtherCluster(id workload.ID, flavors []workload.PodSetFlavors, tried []workload.TriedCluster) bool {
	w := s.waiting.Get(id)
	return w != nil && slices.ContainsFunc(s.offering(s.clustersFor(w), flavors), func(cluster string) bool {
		return s.mayAskIn(cluster) && !triedCluster(tried, cluster, flavors)
	})
}
