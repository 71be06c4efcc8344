package workload

import "muster.dev/muster/pkg/resource"

// PodSetFlavors are the flavors from which a pod set's resources are charged
// (Kueue's podSetAssignments). Resources that no quota bounds are not in it.
type PodSetFlavors struct {
	PodSet  string                   `json:"podSet"`
	Flavors map[resource.Name]string `json:"flavors"`
}

// PodSetTerms is what flavors add to the pods of a pod set, so that they go to the
// nodes of the flavors and are let onto them.
type PodSetTerms struct {
	PodSet       string            `json:"podSet"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}
