package quota

import (
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// maxLevelLabel bounds the label of a level, as in Kueue.
const maxLevelLabel = 316

// Topology is Kueue's: labels of nodes, of which each divides the domains of the one before.
type Topology struct {
	Name string `json:"name"`
	// Levels are the labels, that of the largest domains first.
	Levels []TopologyLevel `json:"levels"`
}

// TopologyLevel is a level of a Topology.
type TopologyLevel struct {
	NodeLabel string `json:"nodeLabel"`
}

// levelsByFlavor returns the labels of the Topology of each flavor that has one.
func (c *Config) levelsByFlavor() map[string][]string {
	byName := map[string][]string{}
	for _, t := range c.Topologies {
		for _, level := range t.Levels {
			byName[t.Name] = append(byName[t.Name], level.NodeLabel)
		}
	}
	byFlavor := map[string][]string{}
	for _, f := range c.Flavors {
		if levels := byName[f.TopologyName]; len(levels) > 0 {
			byFlavor[f.Name] = levels
		}
	}
	return byFlavor
}

// missingTopology names a flavor of the queue whose Topology does not exist; empty for none.
func (c *Config) missingTopology(q *ClusterQueue) string {
	for _, g := range q.ResourceGroups {
		for _, offered := range g.Flavors {
			i := slices.IndexFunc(c.Flavors, func(f Flavor) bool { return f.Name == offered.Name })
			if i < 0 || c.Flavors[i].TopologyName == "" {
				continue
			}
			name := c.Flavors[i].TopologyName
			if !slices.ContainsFunc(c.Topologies, func(t Topology) bool { return t.Name == name }) {
				return fmt.Sprintf("Topology %q of ResourceFlavor %q does not exist", name, offered.Name)
			}
		}
	}
	return ""
}

// LevelsOf returns the labels of the Topology of a flavor, the highest level first; nil for none.
func (t *Tree) LevelsOf(flavor string) []string { return t.levels[flavor] }

// InTopology returns the pod sets as they are in the Topologies of their flavors, and nothing else
// of these; Effective includes it.
func (t *Tree) InTopology(podSets []workload.PodSet, flavors []workload.PodSetFlavors) []workload.PodSet {
	var in []workload.PodSet
	for _, f := range flavors {
		if len(t.levels) == 0 {
			break
		}
		levels := t.levelsFor(f.Flavors)
		for i := range podSets {
			if podSets[i].Name != f.PodSet || len(levels) == 0 {
				continue
			}
			if in == nil {
				in = slices.Clone(podSets)
			}
			in[i] = podSets[i].InLevels(levels)
		}
	}
	if in == nil {
		return podSets
	}
	return in
}

// levelsFor returns the levels of the Topology of a pod set's flavors. They have one at most.
func (t *Tree) levelsFor(flavors map[resource.Name]string) []string {
	if len(t.levels) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Values(flavors)) {
		if levels := t.levels[name]; len(levels) > 0 {
			return levels
		}
	}
	return nil
}

// twoTopologies reports whether flavors have two different Topologies, so that the domains of
// their pods would be those of neither.
func (t *Tree) twoTopologies(flavors map[resource.Name]string) bool {
	first := ""
	for _, name := range flavors {
		topology := t.flavors[name].TopologyName
		if topology != "" && first != "" && topology != first {
			return true
		}
		if topology != "" {
			first = topology
		}
	}
	return false
}

// outsideLevels returns why a Topology has no domains as the pod set asks for them; empty where it
// has, or the pod set asks for none.
func outsideLevels(name string, levels []string, topology *workload.Topology) string {
	if topology == nil {
		return ""
	}
	at, of := 0, 0
	for _, asked := range []struct {
		level string
		at    *int
	}{{topology.Level, &at}, {topology.SliceLevel, &of}} {
		if asked.level == "" {
			continue
		}
		if *asked.at = slices.Index(levels, asked.level); *asked.at < 0 {
			return fmt.Sprintf("its Topology %q has no level %q", name, asked.level)
		}
	}
	if topology.Level != "" && topology.SliceLevel != "" && of < at {
		return fmt.Sprintf("in its Topology %q, level %q of slices is above level %q", name, topology.SliceLevel, topology.Level)
	}
	return ""
}

func (v *validation) topologies(c *Config) {
	seen := map[string]string{}
	for i, t := range c.Topologies {
		path := fault.Index("topologies", i)
		v.name(path, t.Name, seen)
		v.faults.Under(path, CheckLevels(t.Levels))
	}
}

// CheckLevels returns what of the levels of a Topology cannot be, as a fault.List.
func CheckLevels(levels []TopologyLevel) error {
	var faults fault.List
	if len(levels) == 0 || len(levels) > workload.MostLevels {
		faults.Add("levels", "has %d levels; want 1 to %d", len(levels), workload.MostLevels)
		levels = levels[:min(len(levels), workload.MostLevels)]
	}
	for i, level := range levels {
		at := fault.Index("levels", i) + ".nodeLabel"
		switch {
		case !labelKey.MatchString(level.NodeLabel) || len(level.NodeLabel) > maxLevelLabel:
			faults.Add(at, "%s: want a key of a label, such as example.com/rack", fault.Quote(level.NodeLabel))
		case slices.Contains(levels[:i], level):
			faults.Add(at, "%q is there twice; want each label once", level.NodeLabel)
		case level.NodeLabel == capacity.HostnameLabel && i+1 < len(levels):
			faults.Add(at, "%q is for the last level", capacity.HostnameLabel)
		}
	}
	return faults.Err()
}
