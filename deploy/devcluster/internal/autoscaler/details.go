package autoscaler

import "slices"

// gkeRequestLabel is the label of nodes of GKE's queued provisioning, with the name of the resize
// request by which they came.
const gkeRequestLabel = "autoscaling.gke.io/provisioning-request"

// resizeRequest names the resize request of a request; empty for the classes of Cluster
// Autoscaler, which have none.
func (r *request) resizeRequest() string {
	if r.Spec.Class == checkCapacity || r.Spec.Class == bestEffortAtomic {
		return ""
	}
	return "resize-" + string(r.UID)
}

// setDetails writes what GKE reports of the nodes of a request, which are of these pools.
func (r *request) setDetails(needs map[*pool]int) {
	name := r.resizeRequest()
	if name == "" {
		return
	}
	var pools []string
	for p := range needs {
		pools = append(pools, p.Name)
	}
	slices.Sort(pools)
	r.Status.Details = map[string]string{"ResizeRequestName": name}
	if len(pools) > 0 {
		r.Status.Details["NodePoolName"] = pools[0]
	}
}

// nodeLabels are those of the nodes of a request.
func (r *request) nodeLabels() map[string]string {
	labels := map[string]string{RequestLabel: string(r.UID)}
	if name := r.resizeRequest(); name != "" {
		labels[gkeRequestLabel] = name
	}
	return labels
}
