package observed

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// SetLimits records the default requests of a LimitRange; RemoveLimits forgets it.
func (p *Cache) SetLimits(namespace, name string, defaults resource.List) {
	before := p.defaults(namespace)
	if p.limits[namespace] == nil {
		p.limits[namespace] = map[string]resource.List{}
	}
	p.limits[namespace][name] = defaults
	p.limitsChanged(namespace, before)
}

// RemoveLimits records that a LimitRange is gone.
func (p *Cache) RemoveLimits(namespace, name string) {
	before := p.defaults(namespace)
	if delete(p.limits[namespace], name); len(p.limits[namespace]) == 0 {
		delete(p.limits, namespace)
	}
	p.limitsChanged(namespace, before)
}

// ReplaceLimits records that exactly these LimitRanges exist, by namespace and name.
func (p *Cache) ReplaceLimits(all map[string]map[string]resource.List) {
	was := p.limits
	if p.limits = maps.Clone(all); p.limits == nil {
		p.limits = map[string]map[string]resource.List{}
	}
	for _, namespace := range slices.Sorted(maps.Keys(p.namespaces)) {
		p.limitsChanged(namespace, defaultsOf(was[namespace]))
	}
}

// limitsChanged has a namespace published whose defaults are others.
func (p *Cache) limitsChanged(namespace string, before resource.List) {
	if _, there := p.namespaces[namespace]; there && !before.Equal(p.defaults(namespace)) {
		p.dirty.add(Key{Namespace: namespace})
	}
}

func (p *Cache) defaults(namespace string) resource.List { return defaultsOf(p.limits[namespace]) }

// defaultsOf returns what containers ask for by default. Of several LimitRanges the API server
// takes any; the largest one is safe. It is nil for nothing.
func defaultsOf(limits map[string]resource.List) resource.List {
	var defaults resource.List
	for _, of := range limits {
		if len(of) > 0 {
			defaults = defaults.Max(of)
		}
	}
	return defaults
}
