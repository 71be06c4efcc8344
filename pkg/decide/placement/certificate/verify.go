package certificate

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Verify returns nil when the document proves that the workload cannot start on the
// nodes and within the quota that it states, else an error with what is wrong. Its
// cost is bounded, whatever is in the document: it returns ErrTooLarge when there is more
// to search than it searches.
func Verify(d *Document) error {
	if err := d.validate(); err != nil {
		return err
	}
	if d.effort() > mostEffort {
		return ErrTooLarge
	}
	work := verification
	for i := range d.Alternatives {
		a := &d.Alternatives[i]
		if err := d.offered(i); err != nil {
			return fmt.Errorf("alternative %d: %w", i+1, err)
		}
		var err error
		if a.Quota != nil {
			err = d.overQuota(a)
		} else {
			err = d.noPlaces(a, &work)
		}
		if err != nil {
			return fmt.Errorf("alternative %d: %w", i+1, err)
		}
	}
	return nil
}

// mostEffort bounds the counting of one verification, in comparisons of a class of nodes
// with a term of a pod set.
const mostEffort = 1 << 26

// effort is at least how many comparisons the arguments cost that need no search.
func (d *Document) effort() float64 {
	classes, terms, names := 0, 0, resource.List{}
	for _, c := range d.Clusters {
		classes += len(c.Classes)
	}
	for i := range d.PodSets {
		t := &d.PodSets[i].Template
		terms += 1 + len(t.Requests) + len(t.NodeSelector) + len(t.Tolerations) + len(t.HostPorts)
		for _, term := range t.Affinity {
			terms += len(term.Labels) + len(term.Fields)
		}
		names = names.Max(t.Requests)
	}
	return float64(len(d.Alternatives)) * float64(classes) * float64(terms) * float64(1+len(names))
}

// offered returns an error unless the alternative is one of the choices, and the first
// of its kind. Together with their number that means that none is left out.
func (d *Document) offered(i int) error {
	a := &d.Alternatives[i]
	if len(a.Flavors) != len(d.Choices) {
		return fmt.Errorf("%d pod sets have flavors; want %d", len(a.Flavors), len(d.Choices))
	}
	for _, c := range d.Choices {
		if !slices.ContainsFunc(c.Options, func(o map[resource.Name]string) bool { return sameFlavors(o, flavorsOf(a.Flavors, c.PodSet)) }) {
			return fmt.Errorf("pod set %.80q is not offered these flavors", c.PodSet)
		}
	}
	for _, earlier := range d.Alternatives[:i] {
		if !slices.ContainsFunc(d.Choices, func(c Choice) bool {
			return !sameFlavors(flavorsOf(earlier.Flavors, c.PodSet), flavorsOf(a.Flavors, c.PodSet))
		}) {
			return fmt.Errorf("the same flavors are refuted twice")
		}
	}
	return nil
}

func flavorsOf(all []workload.PodSetFlavors, podSet string) map[resource.Name]string {
	for _, f := range all {
		if f.PodSet == podSet {
			return f.Flavors
		}
	}
	return nil
}

func sameFlavors(a, b map[resource.Name]string) bool { return maps.Equal(a, b) }

// overQuota returns an error unless the pods request more than is available.
func (d *Document) overQuota(a *Alternative) error {
	q, asked := a.Quota, int64(0)
	for i := range d.PodSets {
		set := &d.PodSets[i]
		if flavor, charged := flavorsOf(a.Flavors, set.Name)[q.Resource]; charged && flavor == q.Flavor {
			asked = add(asked, multiply(set.Template.Requests[q.Resource], set.Count))
		}
	}
	if asked != q.Asked {
		return fmt.Errorf("quota of flavor %.80q: the pods ask for %d of %.80s, the certificate has %d", q.Flavor, asked, q.Resource, q.Asked)
	}
	if asked <= q.Available {
		return fmt.Errorf("quota of flavor %.80q: the pods ask for %d of %.80s, and %d are available", q.Flavor, asked, q.Resource, q.Available)
	}
	if len(a.Arguments) > 0 {
		return fmt.Errorf("it is refuted by quota, and has arguments beside that")
	}
	return nil
}

// noPlaces returns an error unless there is a proof for each cluster.
func (d *Document) noPlaces(a *Alternative, work *int) error {
	if len(d.Clusters) == 0 {
		return fmt.Errorf("there is no cluster, so nothing is proven")
	}
	if len(a.Arguments) != len(d.Clusters) {
		return fmt.Errorf("%d arguments; want one for each of the %d clusters", len(a.Arguments), len(d.Clusters))
	}
	w := d.effective(a.Flavors)
	for i := range d.Clusters {
		argument := &a.Arguments[i]
		if argument.Cluster != d.Clusters[i].Name {
			return fmt.Errorf("argument %d is of cluster %.80q; want %q", i+1, argument.Cluster, d.Clusters[i].Name)
		}
		if argument.Proof == NotOffered {
			if err := d.Clusters[i].lacksFlavor(a.Flavors, argument); err != nil {
				return fmt.Errorf("cluster %.80q: %w", argument.Cluster, err)
			}
			continue
		}
		if err := prove(d.Clusters[i].Classes, w, argument, work); err != nil {
			return fmt.Errorf("cluster %.80q: %w", argument.Cluster, err)
		}
	}
	return nil
}

// lacksFlavor returns an error unless the cluster does not offer the flavor of the argument, and
// the one pod set that it names is given it.
func (c *Cluster) lacksFlavor(given []workload.PodSetFlavors, a *Argument) error {
	if len(a.PodSets) != 1 || !slices.Contains(slices.Collect(maps.Values(flavorsOf(given, a.PodSets[0]))), a.Flavor) {
		return fmt.Errorf("pod sets %.80q are not given flavor %.80q; want one that is", a.PodSets, a.Flavor)
	}
	if !slices.Contains(c.NotOffered, a.Flavor) {
		return fmt.Errorf("it offers flavor %.80q", a.Flavor)
	}
	if want := (Argument{Cluster: a.Cluster, Proof: a.Proof, PodSets: a.PodSets, Flavor: a.Flavor}); want.Room != a.Room || want.Resource != a.Resource || want.Asked != a.Asked || want.Free != a.Free || want.Key != a.Key {
		return fmt.Errorf("the argument has %+v, and its premises give %+v", *a, want)
	}
	return nil
}

// prove returns an error unless the argument holds.
func prove(classes []Class, w *workload.Workload, a *Argument, work *int) error {
	reduced, err := only(w, a.PodSets)
	if err != nil {
		return err
	}
	want := Argument{Cluster: a.Cluster, Proof: a.Proof, PodSets: a.PodSets}
	switch a.Proof {
	case placement.Counted:
		if want.Room, err = countedOn(classes, reduced); err != nil {
			return err
		}
	case placement.Summed:
		want.Resource = a.Resource
		if want.Asked, want.Free, err = summedOn(classes, reduced, a.Resource); err != nil {
			return err
		}
	case Divided:
		want.Key = a.Key
		if err := dividedOn(classes, reduced, a.Key); err != nil {
			return err
		}
	case Sliced:
		want.Key = a.Key
		if want.Room, err = slicedOn(classes, reduced, a.Key); err != nil {
			return err
		}
	case placement.Searched:
		if err := searchedOn(classes, reduced, work); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown proof %.80q", a.Proof)
	}
	if want.Room != a.Room || want.Resource != a.Resource || want.Asked != a.Asked || want.Free != a.Free || want.Key != a.Key || want.Flavor != a.Flavor {
		return fmt.Errorf("the argument has %+v, but its premises give %+v", *a, want)
	}
	return nil
}

// only returns the workload with these pod sets alone.
func only(w *workload.Workload, names []string) (*workload.Workload, error) {
	if len(names) == 0 || len(names) > len(w.PodSets) {
		return nil, fmt.Errorf("the argument names %d pod sets; want 1 to %d", len(names), len(w.PodSets))
	}
	reduced := &workload.Workload{}
	for i, name := range names {
		at := indexOf(w, name)
		if at < 0 || w.PodSets[at].Count == 0 || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("pod set %.80q has no pods, or is named twice", name)
		}
		reduced.PodSets = append(reduced.PodSets, w.PodSets[at])
	}
	return reduced, nil
}

// effective returns the workload with what the flavors add to its pods.
func (d *Document) effective(flavors []workload.PodSetFlavors) *workload.Workload {
	w := &workload.Workload{PodSets: slices.Clone(d.PodSets)}
	for i := range w.PodSets {
		set := &w.PodSets[i]
		given := flavorsOf(flavors, set.Name)
		for _, f := range d.Flavors {
			if !slices.Contains(slices.Collect(maps.Values(given)), f.Name) {
				continue
			}
			selector := maps.Clone(set.Template.NodeSelector)
			if selector == nil {
				selector = map[string]string{}
			}
			maps.Copy(selector, f.NodeLabels)
			set.Template.NodeSelector = selector
			set.Template.Tolerations = slices.Concat(set.Template.Tolerations, f.Tolerations)
			*set = set.InLevels(f.Levels)
		}
	}
	return w
}
