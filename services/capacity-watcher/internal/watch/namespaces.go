package watch

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"time"

	"muster.dev/muster/pkg/kube"
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

// limitsMost bounds how long namespaces wait for the list of LimitRanges.
const limitsMost = 10 * time.Second

// limits records the LimitRanges of all namespaces.
func (v *view) limits(listed func()) cache.ReflectorStore {
	return &store[*corev1.LimitRange]{
		set: func(o *corev1.LimitRange) {
			limits := limitsOf(o)
			v.target.Apply(func(p *observed.Cache) { p.SetLimits(o.Namespace, o.Name, limits) })
		},
		remove: func(o *corev1.LimitRange) {
			v.target.Apply(func(p *observed.Cache) { p.RemoveLimits(o.Namespace, o.Name) })
		},
		replace: func(list []*corev1.LimitRange) {
			all := map[string]map[string]observed.Limits{}
			for _, o := range list {
				if all[o.Namespace] == nil {
					all[o.Namespace] = map[string]observed.Limits{}
				}
				all[o.Namespace][o.Name] = limitsOf(o)
			}
			v.target.Apply(func(p *observed.Cache) { p.ReplaceLimits(all) })
		},
		listed: listed,
	}
}

func limitsOf(o *corev1.LimitRange) observed.Limits {
	return observed.Limits{Defaults: kube.Defaults(o), Range: kube.RangeOf(o)}
}
