package workload

import "fmt"

// Bounds of what a gang may name. The search for places costs time in each of them,
// so they are far above what training and serving need, and far below what would
// keep a decision long.
const (
	MostPodSets = 128
	// Of one pod set: resources, and terms of its selector, affinity (each value is
	// one) and tolerations.
	MostRequests = 64
	MostTerms    = 512
	// Of all pod sets together: rules on where pods are beside each other (affinity,
	// anti-affinity and spread among the gang's own pods, each pod set named is one;
	// topology), the labels that these name, terms, and host ports.
	MostRules     = 256
	MostTopoKeys  = 12
	MostGangTerms = 4096
	MostHostPorts = 128
)

// CheckComplexity returns what of a gang is more than Muster decides on, nil when
// nothing is.
func CheckComplexity(sets []PodSet) error {
	if len(sets) > MostPodSets {
		return fmt.Errorf("the gang has %d pod sets; at most %d are decided on together: make one pod set of pods that are alike", len(sets), MostPodSets)
	}
	var total complexity
	for i := range sets {
		one := complexity{keys: map[string]bool{}}
		one.add(&sets[i])
		if one.requests > MostRequests {
			return fmt.Errorf("pod set %.80q asks for %d resources; want at most %d", sets[i].Name, one.requests, MostRequests)
		}
		if size := SizeOfAsks(sets[i].Template.Asks); size > MostAsks {
			return fmt.Errorf("pod set %.80q lists %d containers, requests and limits of containers; want at most %d", sets[i].Name, size, MostAsks)
		}
		if one.terms > MostTerms {
			return fmt.Errorf("pod set %.80q has %d terms in its node selector, node affinity (each value is one) and tolerations; want at most %d: give the nodes a label in common",
				sets[i].Name, one.terms, MostTerms)
		}
		total.add(&sets[i])
	}
	switch {
	case total.rules > MostRules:
		return fmt.Errorf("the gang's pod affinities, anti-affinities, spreads and topologies name %d pod sets; want at most %d", total.rules, MostRules)
	case len(total.keys) > MostTopoKeys:
		return fmt.Errorf("the gang's pod affinities, anti-affinities, spreads and topologies name %d labels of nodes; want at most %d", len(total.keys), MostTopoKeys)
	case total.terms > MostGangTerms:
		return fmt.Errorf("the gang has %d terms in node selectors, node affinities (each value is one) and tolerations; want at most %d", total.terms, MostGangTerms)
	case total.ports > MostHostPorts:
		return fmt.Errorf("the gang's pod sets have %d host ports; want at most %d", total.ports, MostHostPorts)
	}
	return nil
}

// complexity is how much pod sets name.
type complexity struct {
	requests, terms, rules, ports int
	keys                          map[string]bool
}

func (c *complexity) add(set *PodSet) {
	if c.keys == nil {
		c.keys = map[string]bool{}
	}
	t := &set.Template
	c.requests += len(t.Requests)
	for _, sums := range t.Unset {
		c.requests += len(sums)
	}
	c.ports += len(t.HostPorts)
	c.terms += len(t.NodeSelector) + len(t.Tolerations)
	for _, term := range t.Affinity {
		c.terms++
		for _, requirements := range [][]Requirement{term.Labels, term.Fields} {
			for _, r := range requirements {
				c.terms += 1 + len(r.Values)
			}
		}
	}
	rule := func(key string, sets int) {
		c.keys[key] = true
		c.rules += 1 + sets
	}
	for _, r := range t.Together {
		rule(r.TopologyKey, len(r.PodSets))
	}
	for _, r := range t.Apart {
		rule(r.TopologyKey, len(r.PodSets))
	}
	for _, r := range t.Spread {
		rule(r.TopologyKey, 0)
	}
	if set.Topology != nil {
		for _, key := range []string{set.Topology.Level, set.Topology.SliceLevel} {
			if key != "" {
				rule(key, 0)
			}
		}
	}
}
