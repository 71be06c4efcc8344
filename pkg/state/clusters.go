package state

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
)

// ClusterLoad is what the term knows of a cluster.
type ClusterLoad struct {
	Name        string
	Nodes, Live int                  // nodes that are there, and workloads that hold places
	Cordon      *quota.ClusterCordon // nil while no operator cordons it
	Silent      time.Time            // since when its watcher is silent; zero while it reports
	// Returning: its watcher reports again, and its dispatcher has not confirmed that nothing is
	// left there of the gangs that have failed over.
	Returning bool
}

// ClusterLoads lists the clusters that have nodes or workloads, or are described or cordoned,
// by name.
func (s *State) ClusterLoads() []ClusterLoad {
	loads := map[string]*ClusterLoad{}
	of := func(name string) *ClusterLoad {
		if loads[name] == nil {
			loads[name] = &ClusterLoad{Name: name, Cordon: s.admission.Quota().Cordon(name), Returning: s.admission.Uncleared(name)}
			if !loads[name].Returning {
				loads[name].Silent = s.admission.Silent(name)
			}
		}
		return loads[name]
	}
	for _, c := range s.policy.Clusters {
		of(c.Name)
	}
	for _, c := range s.policy.ClusterCordons {
		of(c.Name)
	}
	for key, n := range s.nodes {
		if n.present {
			of(key.Cluster).Nodes++
		}
	}
	for e := range s.live.All() {
		if e.Holding && e.Cluster != "" {
			of(e.Cluster).Live++
		}
	}
	all := make([]ClusterLoad, 0, len(loads))
	for _, name := range slices.Sorted(maps.Keys(loads)) {
		all = append(all, *loads[name])
	}
	return all
}
