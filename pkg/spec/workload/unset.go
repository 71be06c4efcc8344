package workload

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// Unset is, for the resources that a container of the pod does not request, how the request of
// the pod depends on the default of a container in its namespace (a LimitRange): it is the
// largest of these sums.
type Unset map[resource.Name][]DefaultSum

// DefaultSum is Base and a number of times the default.
type DefaultSum struct {
	Base  int64 `json:"base,omitempty"`
	Times int64 `json:"times,omitempty"`
}

// defaultable are the resources for which defaults of namespaces count.
var defaultable = []resource.Name{resource.CPU, resource.Memory}

// MayDefault reports whether the default of a namespace for the resource counts.
func MayDefault(name resource.Name) bool { return slices.Contains(defaultable, name) }

// mostSums bounds the sums of a resource; more are joined to one that is at least as large.
const mostSums = 8

// Add adds a sum for a resource, and leaves out those that others exceed.
func (u Unset) Add(name resource.Name, sum DefaultSum) {
	exceeds := func(a, b DefaultSum) bool { return a.Base >= b.Base && a.Times >= b.Times }
	sums := u[name]
	if slices.ContainsFunc(sums, func(other DefaultSum) bool { return exceeds(other, sum) }) {
		return
	}
	sums = append(slices.DeleteFunc(sums, func(other DefaultSum) bool { return exceeds(sum, other) }), sum)
	if len(sums) > mostSums {
		for _, other := range sums {
			sum.Base, sum.Times = max(sum.Base, other.Base), max(sum.Times, other.Times)
		}
		sums = []DefaultSum{sum}
	}
	u[name] = sums
}

// WithDefaults returns the pod sets as pods of a namespace with these defaults have them, the same
// slice if nothing is different.
func WithDefaults(sets []PodSet, defaults resource.List) []PodSet {
	var all []PodSet
	for i := range sets {
		requests := sets[i].Template.with(defaults)
		if requests == nil {
			continue
		}
		if all == nil {
			all = slices.Clone(sets)
		}
		all[i].Template.Requests = requests
	}
	if all == nil {
		return sets
	}
	return all
}

// with returns the requests of a pod with these defaults, nil if it has them already.
func (t *Template) with(defaults resource.List) resource.List {
	var requests resource.List
	for _, name := range slices.Sorted(maps.Keys(t.Unset)) {
		amount := int64(0)
		for _, sum := range t.Unset[name] {
			times := resource.List{name: defaults[name]}.Times(sum.Times)
			amount = max(amount, times.Plus(resource.List{name: sum.Base})[name])
		}
		if amount == t.Requests[name] {
			continue
		}
		if requests == nil {
			requests = t.Requests.Clone()
		}
		if requests[name] = amount; amount == 0 {
			delete(requests, name)
		}
	}
	return requests
}

// Max returns the template with what either of two pods asks for, which are alike otherwise.
func (t Template) Max(other Template) Template {
	t.Asks = asksOfBoth(t.Asks, other.Asks)
	unset := Unset{}
	for _, each := range []Template{t, other} {
		for name := range each.Unset {
			for _, of := range []Template{t, other} {
				for _, sum := range of.sums(name) {
					unset.Add(name, sum)
				}
			}
		}
	}
	if t.Requests = t.Requests.Max(other.Requests); len(unset) > 0 {
		t.Unset = unset
	}
	return t
}

func (t *Template) sums(name resource.Name) []DefaultSum {
	if sums, open := t.Unset[name]; open {
		return sums
	}
	return []DefaultSum{{Base: t.Requests[name]}}
}
