package workload

import (
	"slices"
	"strings"
)

// levelSeparator joins the labels of a level of a Topology; no key of a label has it.
const levelSeparator = ","

// hostnameLabel is the label of Kubernetes of which each node has a value of its own.
const hostnameLabel = "kubernetes.io/hostname"

// MostLevels bounds the levels of a Topology, as in Kueue.
const MostLevels = 16

// LevelIn returns a level of a Topology with those above it, of which LevelKeys are the labels.
// It reports false where the Topology lacks the level. The levels begin with the highest.
func LevelIn(levels []string, level string) (string, bool) {
	i := slices.Index(levels, level)
	if i < 0 {
		return "", false
	}
	return strings.Join(levels[:i+1], levelSeparator), true
}

// LevelKeys returns the labels whose values are a domain of a level: those of the levels from the
// highest down to it in a Topology, else one.
func LevelKeys(level string) []string { return strings.Split(level, levelSeparator) }

// LevelsDownTo returns the levels of a Topology down to one that has those above it, the highest
// first.
func LevelsDownTo(level string) []string {
	keys, levels := LevelKeys(level), []string(nil)
	for i := range keys {
		levels = append(levels, strings.Join(keys[:i+1], levelSeparator))
	}
	return levels
}

// LevelsWithin returns the levels below the one that a set asks for, the highest first.
func (t *Topology) LevelsWithin() []string {
	if t.Level == "" || !strings.HasPrefix(t.Within, t.Level+levelSeparator) {
		return nil
	}
	return LevelsDownTo(t.Within)[len(LevelKeys(t.Level)):]
}

// DomainOf returns the domain of a level of a node with these labels, and false for a node that is
// in none.
func DomainOf(labels map[string]string, level string) (string, bool) {
	if !strings.Contains(level, levelSeparator) {
		value, labelled := labels[level]
		return value, labelled
	}
	var values []string
	for _, key := range LevelKeys(level) {
		value, labelled := labels[key]
		if !labelled {
			return "", false
		}
		values = append(values, value)
	}
	return strings.Join(values, "/"), true // no value has it
}

// InLevels returns the pod set as Kueue schedules it to nodes of a Topology with these levels: to
// nodes that have the label of each level. Its topology is about the domains of the Topology, of
// which two with the same label and others above are two. The levels begin with the highest.
func (s PodSet) InLevels(levels []string) PodSet {
	for _, key := range levels {
		s.Template.Affinity = Requiring(s.Template.Affinity, Requirement{Key: key, Operator: "Exists"})
	}
	if s.Topology == nil {
		return s
	}
	t := *s.Topology
	if level, ok := LevelIn(levels, t.Level); ok {
		if s.Group != "" && t.Mode == TopologyRequired {
			s.Template.Together = slices.Clone(s.Template.Together)
			for i := range s.Template.Together {
				if s.Template.Together[i].TopologyKey == t.Level {
					s.Template.Together[i].TopologyKey = level
				}
			}
		}
		t.Level, t.Within = level, aboveNodes(levels)
	}
	if level, ok := LevelIn(levels, t.SliceLevel); ok {
		t.SliceLevel = level
	}
	s.Topology = &t
	return s
}

// LevelOn returns a level without the labels above it that a node lacks: as it is for pods on that
// node, which were placed before a Topology had these labels.
func LevelOn(level string, labels map[string]string) string {
	keys := LevelKeys(level)
	own := len(keys) - 1
	above := slices.DeleteFunc(keys[:own:own], func(key string) bool {
		_, labelled := labels[key]
		return !labelled
	})
	return strings.Join(append(above, keys[own]), levelSeparator)
}

// On returns the pod set with its levels as they are for pods on a node with these labels.
func (s PodSet) On(labels map[string]string) PodSet {
	if s.Topology != nil {
		t := *s.Topology
		t.Level, t.SliceLevel = LevelOn(t.Level, labels), LevelOn(t.SliceLevel, labels)
		s.Topology = &t
	}
	s.Template.Together = slices.Clone(s.Template.Together)
	for i := range s.Template.Together {
		s.Template.Together[i].TopologyKey = LevelOn(s.Template.Together[i].TopologyKey, labels)
	}
	return s
}

// aboveNodes is the lowest level whose domains are no single nodes.
func aboveNodes(levels []string) string {
	if last := len(levels) - 1; levels[last] == hostnameLabel {
		levels = levels[:last]
	}
	return strings.Join(levels, levelSeparator)
}

// Requiring adds a requirement to each alternative of a node affinity.
func Requiring(terms []NodeTerm, r Requirement) []NodeTerm {
	if len(terms) == 0 {
		return []NodeTerm{{Labels: []Requirement{r}}}
	}
	all := slices.Clone(terms)
	for i := range all {
		all[i].Labels = append(slices.Clone(all[i].Labels), r)
	}
	return all
}
