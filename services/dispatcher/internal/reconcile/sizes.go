package reconcile

import (
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// raySizes are those of the worker groups of the RayCluster, and when it was used
// last. Of a RayJob or RayService it is the one that KubeRay keeps for it; while
// there are two of them, or none, nothing is known.
func (p *pass) raySizes(object *kubernetes.Object) (sizes, keeps map[string]int, lastUsed time.Time) {
	if p.command.Kind == ray.RayCluster {
		return object.Sizes, object.Keeps, object.LastUsed
	}
	clusters := p.clusters()
	if len(clusters) != 1 {
		return nil, nil, time.Time{}
	}
	return clusters[0].Sizes, clusters[0].Keeps, time.Time{}
}

// sizes are the sizes of the worker groups of all wrapped Ray objects, by pod set, and those of
// the other objects that need fewer pods by now (left). Of a Ray object that has none or several
// RayClusters they are those that were reported last; when nothing is known of all, the maps are nil.
func (w *wrappedObjects) sizes(p *pass, left map[string]int) (sizes, keeps map[string]int) {
	sizes, keeps = map[string]int{}, map[string]int{}
	maps.Copy(sizes, left)
	maps.Copy(keeps, left)
	clusters := p.clusters()
	for _, one := range w.items {
		if one.err != nil || !bundle.IsRay(one.id) {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(clusters), func(c kubernetes.Object) bool { return !isClusterOf(c, one.id) })
		if len(of) != 1 {
			w.takeOver(sizes, p.status.Sizes, one.item.PodSetPrefix)
			w.takeOver(keeps, p.status.Keeps, one.item.PodSetPrefix)
			continue
		}
		for group, size := range of[0].Sizes {
			sizes[one.item.PodSetPrefix+group], keeps[one.item.PodSetPrefix+group] = size, of[0].Keeps[group]
		}
	}
	if len(sizes) == 0 {
		return nil, nil
	}
	return sizes, keeps
}

// takeOver copies what was reported of the Ray object whose pod sets have the prefix. It is empty
// when there is one Ray object; the pod sets of other objects are in their templates.
func (w *wrappedObjects) takeOver(sizes, reported map[string]int, prefix string) {
	for name, size := range reported {
		others := slices.ContainsFunc(w.items, func(one *wrappedItem) bool {
			return slices.ContainsFunc(one.item.Templates, func(t bundle.Template) bool { return t.PodSet == name })
		})
		if strings.HasPrefix(name, prefix) && !others {
			sizes[name] = size
		}
	}
}

// isClusterOf reports whether the RayCluster is the wrapped object or KubeRay made
// it for that.
func isClusterOf(cluster kubernetes.Object, id bundle.Identity) bool {
	if id.Kind == ray.RayCluster {
		return cluster.Name == id.Name && !cluster.Owned
	}
	return cluster.Controller.Kind == id.Kind && cluster.Controller.Name == id.Name
}
