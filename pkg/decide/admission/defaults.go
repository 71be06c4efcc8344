package admission

import (
	"maps"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Containers that ask none of a resource ask for the default of their namespace, which the API
// server writes into them when a pod is created. What a waiting workload asks for counts it.
// Where clusters have different defaults, the largest counts in all of them; those of clusters
// that have left do not count. A gang that has
// started keeps what was reserved for it.

// defaultsOf returns the default requests of the namespace of a workload.
func (s *State) defaultsOf(w *workload.Workload) resource.List {
	var defaults resource.List
	for cluster, names := range s.namespaces.of {
		if home := w.Home(); home != "" && home != cluster || s.namespaces.left[cluster] {
			continue
		}
		if of := names[w.Namespace].Defaults; len(of) > 0 {
			defaults = defaults.Max(of)
		}
	}
	return defaults
}

// noteLeft has the defaults of clusters that have left not count. What waits asks for the
// others with the next decision.
func (s *State) noteLeft() {
	if left := s.tree.LeftClusters(); !maps.Equal(left, s.namespaces.left) {
		s.namespaces.left, s.events.defaults = left, true
	}
}

// withDefaults returns what a waiting workload asks for by default, too, and whether that is
// something else than it asks for now. One that grows asks for pods like those that it has.
func (s *State) withDefaults(w *Waiting) (sets []workload.PodSet, changed bool) {
	if sets = w.Workload.PodSets; len(sets) == 0 || w.Grows {
		return sets, false
	}
	sets = workload.WithDefaults(sets, s.defaultsOf(w.Workload))
	return sets, &sets[0] != &w.Workload.PodSets[0]
}

// applyDefaults has a workload that comes to wait ask for what its pods will. The caller's
// workload stays as it is.
func (s *State) applyDefaults(w *Waiting) {
	if sets, changed := s.withDefaults(w); changed {
		asks := *w.Workload
		asks.PodSets = sets
		w.Workload, w.defaulted = &asks, true
	}
}
