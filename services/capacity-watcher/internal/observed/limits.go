package observed

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Limits are what a LimitRange demands of pods, and gives to them.
type Limits struct {
	Defaults resource.List // default requests of containers, of what counts as defaults
	// Range is what it demands; nil when that is not known.
	Range *workload.LimitRange
}

// SetLimits records a LimitRange; RemoveLimits forgets it.
func (p *Cache) SetLimits(namespace, name string, limits Limits) {
	before := p.limited(namespace)
	if p.limits[namespace] == nil {
		p.limits[namespace] = map[string]Limits{}
	}
	p.limits[namespace][name] = limits
	p.limitsChanged(namespace, before)
}

// RemoveLimits records that a LimitRange is gone.
func (p *Cache) RemoveLimits(namespace, name string) {
	before := p.limited(namespace)
	if delete(p.limits[namespace], name); len(p.limits[namespace]) == 0 {
		delete(p.limits, namespace)
	}
	p.limitsChanged(namespace, before)
}

// ReplaceLimits records that exactly these LimitRanges exist, by namespace and name.
func (p *Cache) ReplaceLimits(all map[string]map[string]Limits) {
	was := p.limits
	if p.limits = maps.Clone(all); p.limits == nil {
		p.limits = map[string]map[string]Limits{}
	}
	for _, namespace := range slices.Sorted(maps.Keys(p.namespaces)) {
		p.limitsChanged(namespace, limitedBy(was[namespace]))
	}
}

// limitsChanged has a namespace published whose LimitRanges have changed.
func (p *Cache) limitsChanged(namespace string, before limited) {
	if _, there := p.namespaces[namespace]; there && !before.equal(p.limited(namespace)) {
		p.dirty.add(Key{Namespace: namespace})
	}
}

// limited is what the LimitRanges of a namespace demand and give together.
type limited struct {
	defaults resource.List
	ranges   []workload.LimitRange
}

func (l limited) equal(other limited) bool {
	return l.defaults.Equal(other.defaults) && workload.SameRanges(l.ranges, other.ranges)
}

func (p *Cache) limited(namespace string) limited { return limitedBy(p.limits[namespace]) }

// limitedBy returns what containers ask for by default, and what is demanded of pods. Of the
// defaults of several LimitRanges the API server takes any; the largest one is safe. What is
// demanded is known when it is of all LimitRanges, because each may fill in what another one
// bounds.
func limitedBy(limits map[string]Limits) (l limited) {
	known := true
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		of := limits[name]
		if len(of.Defaults) > 0 {
			l.defaults = l.defaults.Max(of.Defaults)
		}
		switch {
		case of.Range == nil:
			known = false
		case len(of.Range.Items) > 0: // else it bounds volumes alone
			l.ranges = append(l.ranges, *of.Range)
		}
	}
	if !known || len(l.ranges) > workload.MostRanges || workload.AmountsOf(l.ranges) > workload.MostNamespaceAmounts {
		l.ranges = nil
	}
	return l
}
