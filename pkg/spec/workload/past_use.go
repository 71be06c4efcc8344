package workload

import "muster.dev/muster/pkg/spec/resource"

// PastUse is what a queue used in a namespace (a LocalQueue), by which its ClusterQueue
// orders workloads.
type PastUse struct {
	Namespace string `json:"namespace,omitempty"`
	// Use is the weighted sum of what was consumed, per weight: workloads of the queue with
	// the least go first. It is the largest number there is for weight zero.
	Use float64 `json:"use"`
	// Weight of the LocalQueue.
	Weight float64 `json:"weight"`
	// Consumed is the decayed average of what its gangs used, in cores, bytes and pieces.
	Consumed map[resource.Name]float64 `json:"consumed,omitempty"`
}
