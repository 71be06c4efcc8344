package certificate

import (
	"errors"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// validate returns what of a document is malformed, or is more than one may have.
func (d *Document) validate() error {
	if d.APIVersion != APIVersion || d.Kind != Kind {
		return fmt.Errorf("apiVersion %.80q, kind %.80q: want %q, %q", d.APIVersion, d.Kind, APIVersion, Kind)
	}
	if d.Workload == "" {
		return errors.New("workload: want its id")
	}
	for _, check := range []func() error{d.validatePodSets, d.validateClusters, d.validateFlavors} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) validatePodSets() error {
	if err := workload.CheckPodSets(d.PodSets, maxPods, maxAmount); err != nil {
		return err
	}
	for i := range d.PodSets {
		set := &d.PodSets[i]
		if slices.ContainsFunc(set.Template.HostPorts, func(p workload.HostPort) bool { return p.IP != "" }) {
			return fmt.Errorf("pod set %.80q has host ports with addresses, which no certificate has", set.Name)
		}
	}
	return nil
}

func (d *Document) validateClusters() error {
	if len(d.Clusters) > maxClusters {
		return fmt.Errorf("%d clusters; want at most %d", len(d.Clusters), maxClusters)
	}
	nodes, classes, names := 0, 0, map[string]bool{}
	for _, c := range d.Clusters {
		if names[c.Name] {
			return fmt.Errorf("two clusters have the name %.80q", c.Name)
		}
		names[c.Name] = true
		if classes += len(c.Classes); classes > maxClasses {
			return fmt.Errorf("more than %d classes of nodes", maxClasses)
		}
		for i := range c.Classes {
			if n := c.Classes[i].Nodes; n < 1 || n > maxNodes {
				return fmt.Errorf("cluster %.80q: a class of %d nodes; want 1 to %d", c.Name, n, maxNodes)
			}
			if nodes += c.Classes[i].Nodes; nodes > maxNodes {
				return fmt.Errorf("more than %d nodes", maxNodes)
			}
			if err := amounts(c.Classes[i].Free); err != nil {
				return fmt.Errorf("free amounts of a class of cluster %.80q: %w", c.Name, err)
			}
			if slices.ContainsFunc(c.Classes[i].PortsInUse, func(p workload.HostPort) bool { return p.IP != "" }) {
				return fmt.Errorf("a class of cluster %.80q has ports with addresses, which no certificate has", c.Name)
			}
		}
	}
	return nil
}

func (d *Document) validateFlavors() error {
	if len(d.Flavors) > maxFlavors {
		return fmt.Errorf("%d flavors; want at most %d", len(d.Flavors), maxFlavors)
	}
	known := map[string]bool{}
	for _, f := range d.Flavors {
		if known[f.Name] || f.Name == "" {
			return fmt.Errorf("flavor %.80q: want one of each name", f.Name)
		}
		if len(f.Levels) > 0 {
			levels := make([]quota.TopologyLevel, len(f.Levels))
			for i, label := range f.Levels {
				levels[i].NodeLabel = label
			}
			if err := quota.CheckLevels(levels); err != nil {
				return fmt.Errorf("topology of flavor %.80q: %w", f.Name, err)
			}
		}
		known[f.Name] = true
	}
	combinations, sets := 1, map[string]bool{}
	for _, c := range d.Choices {
		if sets[c.PodSet] || !slices.ContainsFunc(d.PodSets, func(s workload.PodSet) bool { return s.Name == c.PodSet }) {
			return fmt.Errorf("choices of pod set %.80q: want one entry for a pod set of the workload", c.PodSet)
		}
		sets[c.PodSet] = true
		if combinations *= len(c.Options); combinations == 0 || combinations > maxOptions {
			return fmt.Errorf("the choices of flavors have %d combinations; want 1 to %d", combinations, maxOptions)
		}
		for i, option := range c.Options {
			for name, flavor := range option {
				if !known[flavor] {
					return fmt.Errorf("choices of pod set %.80q: %s has the unknown flavor %.80q", c.PodSet, name, flavor)
				}
			}
			if slices.ContainsFunc(c.Options[:i], func(o map[resource.Name]string) bool { return sameFlavors(o, option) }) {
				return fmt.Errorf("choices of pod set %.80q: one is there twice", c.PodSet)
			}
		}
	}
	for _, c := range d.Clusters {
		for i, name := range c.NotOffered {
			if !known[name] || slices.Contains(c.NotOffered[:i], name) {
				return fmt.Errorf("cluster %.80q: flavor %.80q is not offered: want each of the flavors once", c.Name, name)
			}
		}
	}
	if len(d.Alternatives) != combinations {
		return fmt.Errorf("%d of %d combinations of flavors are refuted", len(d.Alternatives), combinations)
	}
	return nil
}

// amounts returns an error unless every amount can be added up without overflow.
func amounts(of resource.List) error {
	if len(of) > workload.MostRequests {
		return fmt.Errorf("%d resources; want at most %d", len(of), workload.MostRequests)
	}
	for _, name := range of.Names() {
		if of[name] < 0 || of[name] > maxAmount {
			return fmt.Errorf("%.80s is %d; want 0 to %d", name, of[name], int64(maxAmount))
		}
	}
	return nil
}
