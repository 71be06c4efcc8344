package workload

import "muster.dev/muster/pkg/resource"

// PodSetFlavors are the flavors from which a pod set's resources are charged
// (Kueue's podSetAssignments). Resources that no quota bounds are not in it.
type PodSetFlavors struct {
	PodSet  string                   `json:"podSet"`
	Flavors map[resource.Name]string `json:"flavors"`
}
