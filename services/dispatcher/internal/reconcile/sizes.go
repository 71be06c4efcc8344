package reconcile

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// sizes are those of the worker groups of the RayCluster, and when it was used
// last. Of a RayJob or RayService it is the one that KubeRay keeps for it; while
// there are two of them, or none, nothing is known.
func (r *Reconciler) sizes(command *event.GangDesired, object *kubernetes.Object) (sizes, keeps map[string]int, lastUsed time.Time) {
	if command.Kind == ray.RayCluster {
		return object.Sizes, object.Keeps, object.LastUsed
	}
	clusters := r.clusters(command)
	if len(clusters) != 1 {
		return nil, nil, time.Time{}
	}
	return clusters[0].Sizes, clusters[0].Keeps, time.Time{}
}

// clusters are the RayClusters of the attempt that are to stay.
func (r *Reconciler) clusters(command *event.GangDesired) []kubernetes.Object {
	return slices.DeleteFunc(r.cache.Clusters(command.Workload), func(o kubernetes.Object) bool {
		return o.Namespace != command.Namespace || o.Attempt != command.Attempt || o.Deleting
	})
}

// bundleSizes are the sizes of the worker groups of all Ray objects of a bundle, by
// pod set. Of a Ray object that has none or several RayClusters nothing is known;
// when that is so of all, the maps are nil.
func (r *Reconciler) bundleSizes(command *event.GangDesired, wrapped bundle.Bundle) (sizes, keeps map[string]int) {
	clusters := r.clusters(command)
	for _, item := range wrapped.Items {
		id, err := item.Identity()
		if err != nil || !bundle.IsRay(id) {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(clusters), func(c kubernetes.Object) bool { return !isClusterOf(c, id) })
		if len(of) != 1 {
			continue
		}
		if sizes == nil {
			sizes, keeps = map[string]int{}, map[string]int{}
		}
		for group, size := range of[0].Sizes {
			sizes[item.PodSetPrefix+group], keeps[item.PodSetPrefix+group] = size, of[0].Keeps[group]
		}
	}
	return sizes, keeps
}

// isClusterOf reports whether the RayCluster is the wrapped object or KubeRay made
// it for that.
func isClusterOf(cluster kubernetes.Object, id bundle.Identity) bool {
	if id.Kind == ray.RayCluster {
		return cluster.Name == id.Name && !cluster.Owned
	}
	return cluster.Controller.Kind == id.Kind && cluster.Controller.Name == id.Name
}
