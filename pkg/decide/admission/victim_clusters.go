package admission

import (
	"maps"
	"slices"
)

// The victims of one gang are all in one cluster: in the one where it then starts, or, where
// its nodes are free already and only quota lacks, all in another one.

// clustersOf returns the clusters of the candidates, sorted.
func clustersOf(sets []candidateSet) []string {
	seen := map[string]bool{}
	for _, set := range sets {
		for _, c := range set.candidates {
			seen[c.Cluster] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// victimClusters returns the clusters in each of which victims are looked for, for a start
// in the given one: that cluster first. Others are of no use while its nodes are known not
// to suffice.
func (s *State) victimClusters(flavored *flavoredSignature, cluster string, from []string) []string {
	all := []string{cluster}
	if _, lacking := flavored.verdicts[cluster]; lacking {
		return all
	}
	for _, other := range from {
		if other != cluster && s.silent[other].IsZero() { // in a silent one no removal is confirmed
			all = append(all, other)
		}
	}
	return all
}

// within returns the sets with their candidates in the cluster alone; of are the clusters
// in which there are candidates.
func within(sets []candidateSet, cluster string, of int) []candidateSet {
	var kept []candidateSet
	for _, set := range sets {
		if of > 1 || len(set.candidates) > 0 && set.candidates[0].Cluster != cluster {
			set.candidates = slices.DeleteFunc(slices.Clone(set.candidates), func(c candidate) bool { return c.Cluster != cluster })
		}
		if len(set.candidates) > 0 {
			kept = append(kept, set)
		}
	}
	return kept
}
