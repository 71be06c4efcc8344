package workload

import "muster.dev/muster/pkg/spec/resource"

// PodSetFlavors are the flavors from which a pod set's resources are charged
// (Kueue's podSetAssignments). Resources that no quota bounds are not in it.
type PodSetFlavors struct {
	PodSet  string                   `json:"podSet"`
	Flavors map[resource.Name]string `json:"flavors"`
}

// PodSetTerms are what flavors and AdmissionChecks add to the pods of a pod set: flavors
// selectors and tolerations, so that the pods go to the nodes of the flavors and tolerate
// their taints. Kueue calls them PodSetInfo.
type PodSetTerms struct {
	PodSet       string            `json:"podSet"`
	Labels       map[string]string `json:"labels,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	Tolerations  []Toleration      `json:"tolerations,omitempty"`
}
