package workload

import (
	"slices"

	"muster.dev/muster/pkg/spec/fault"
)

// Complete returns the selector in the form of ParseClusterSelector, and what of it cannot be, as
// a fault.List.
func (s ClusterSelector) Complete() (ClusterSelector, error) {
	parsed, err := ParseClusterSelector(string(s))
	if err == nil {
		return parsed, nil
	}
	var faults fault.List
	faults.Add("", "%s", err)
	return s, faults.Err()
}

// PreferringFor returns the pod sets of a workload with the clusters that its queue prefers; of an
// object that moves, else the one where it was made. They stay as they are when the workload
// prefers clusters itself, or runs in the cluster where its object was made.
func (r Rules) PreferringFor(w *Workload) []PodSet {
	own := func(set PodSet) bool { return set.PreferClusters != "" }
	prefers := r.PreferClusters
	if home := w.MadeIn(); prefers == "" && w.Life.Moves {
		prefers = ClusterSelector(ClusterNameKey + "=" + home)
	}
	if prefers == "" || w.Home() != "" || slices.ContainsFunc(w.PodSets, own) {
		return w.PodSets
	}
	sets := slices.Clone(w.PodSets)
	for i := range sets {
		sets[i].PreferClusters = prefers
	}
	return sets
}
