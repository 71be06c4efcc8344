package workload

import "muster.dev/muster/pkg/spec/resource"

// PodSetFlavors are the flavors from which a pod set's resources are charged
// (Kueue's podSetAssignments). Resources that no quota bounds are not in it.
type PodSetFlavors struct {
	PodSet  string                   `json:"podSet"`
	Flavors map[resource.Name]string `json:"flavors"`
}

// PodSetTerms are the labels and tolerations that flavors add to the pods of a pod set,
// so that they go to the nodes of the flavors and tolerate their taints. Kueue calls them
// PodSetInfo.
type PodSetTerms struct {
	PodSet       string            `json:"podSet"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}
