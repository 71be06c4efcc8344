package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/services/capacity-watcher/internal/observed"
)

// namespaces records the labels of all namespaces.
func (v *view) namespaces() cache.ReflectorStore {
	return &store[*metav1.PartialObjectMetadata]{
		set: func(o *metav1.PartialObjectMetadata) {
			v.target.Apply(func(p *observed.Cache) { p.SetNamespace(o.Name, o.Labels) })
		},
		remove: func(o *metav1.PartialObjectMetadata) {
			v.target.Apply(func(p *observed.Cache) { p.RemoveNamespace(o.Name) })
		},
		replace: func(list []*metav1.PartialObjectMetadata) {
			all := make(map[string]map[string]string, len(list))
			for _, o := range list {
				all[o.Name] = o.Labels
			}
			v.target.Apply(func(p *observed.Cache) { p.ReplaceNamespaces(all) })
		},
		listed: func() {},
	}
}
