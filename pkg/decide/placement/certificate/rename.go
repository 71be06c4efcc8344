package certificate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"muster.dev/muster/pkg/spec/workload"
)

// renaming replaces what a document must not have: names of nodes, values of their
// labels, taints, and terms of flavors that the workload does not name itself.
//
// It keeps every answer to what the workload and its flavors ask of a node. A value of a
// label that is only selected by is replaced by any other with the same answers, so that
// it shows no more than they do. Values of labels with rules on domains stay different
// from each other.
type renaming struct {
	flavors []Flavor // renamed
	ports   []workload.HostPort
	// own has the values that the workload names, by the key of the label.
	own map[string]map[string]bool
	// domains are the keys with rules on domains.
	domains map[string]bool
	// asked and askedRenamed are the terms on each label, and the same after renaming.
	asked, askedRenamed map[string][]workload.Requirement
	fields              map[string][]workload.Requirement
	keys                map[string]string            // of labels that only flavors name
	values              map[string]map[string]string // of labels, by the original key
	taintKeys           map[string]map[string]bool   // that tolerations name, with the values
	taintNames          map[string]string            // of those that only flavors name
}

// cordoned is the key of the taint that stands for the field of a node.
const cordoned = "node.kubernetes.io/unschedulable"

func newRenaming(sets []workload.PodSet, flavors []Flavor) *renaming {
	r := &renaming{
		own: map[string]map[string]bool{}, domains: map[string]bool{}, asked: map[string][]workload.Requirement{}, askedRenamed: map[string][]workload.Requirement{},
		fields: map[string][]workload.Requirement{}, keys: map[string]string{}, values: map[string]map[string]string{},
		taintKeys: map[string]map[string]bool{}, taintNames: map[string]string{},
	}
	for i := range sets {
		r.readSet(&sets[i])
	}
	slices.SortFunc(r.ports, comparePorts)
	r.ports = slices.Compact(r.ports)
	for _, f := range flavors {
		r.flavors = append(r.flavors, r.flavor(f))
	}
	return r
}

// readSet notes what a pod set names.
func (r *renaming) readSet(set *workload.PodSet) {
	t := &set.Template
	r.ports = append(r.ports, t.HostPorts...)
	for key, value := range t.NodeSelector {
		r.ask(workload.Requirement{Key: key, Operator: "In", Values: []string{value}})
	}
	for _, term := range t.Affinity {
		for _, requirement := range term.Labels {
			r.ask(requirement)
		}
		for _, requirement := range term.Fields {
			r.fields[requirement.Key] = append(r.fields[requirement.Key], requirement)
		}
	}
	for _, toleration := range t.Tolerations {
		r.tolerate(toleration.Key, toleration.Value)
	}
	keys := []string{}
	for _, rule := range t.Together {
		keys = append(keys, rule.TopologyKey)
	}
	for _, rule := range t.Apart {
		keys = append(keys, rule.TopologyKey)
	}
	for _, rule := range t.Spread {
		keys = append(keys, rule.TopologyKey)
	}
	if topology := set.Topology; topology != nil {
		keys = append(keys, topology.Level, topology.SliceLevel)
	}
	for _, key := range keys {
		if key != "" {
			r.domains[key] = true
			r.name(key)
		}
	}
}

func (r *renaming) name(key string, values ...string) {
	if r.own[key] == nil {
		r.own[key] = map[string]bool{}
	}
	for _, value := range values {
		r.own[key][value] = true
	}
}

func (r *renaming) ask(requirement workload.Requirement) {
	r.name(requirement.Key, requirement.Values...)
	r.asked[requirement.Key] = append(r.asked[requirement.Key], requirement)
	r.askedRenamed[requirement.Key] = append(r.askedRenamed[requirement.Key], requirement)
}

func (r *renaming) tolerate(key, value string) {
	if r.taintKeys[key] == nil {
		r.taintKeys[key] = map[string]bool{}
	}
	r.taintKeys[key][value] = true
}

// flavor returns a flavor without the texts that the workload does not name.
func (r *renaming) flavor(f Flavor) Flavor {
	renamed := Flavor{Name: f.Name}
	for _, key := range f.Levels {
		r.nameKey(key)
		r.domains[key] = true
		renamed.Levels = append(renamed.Levels, r.key(key))
	}
	for _, key := range slices.Sorted(maps.Keys(f.NodeLabels)) {
		value := f.NodeLabels[key]
		r.nameKey(key)
		if renamed.NodeLabels == nil {
			renamed.NodeLabels = map[string]string{}
		}
		to := r.value(key, value, "flavor")
		renamed.NodeLabels[r.key(key)] = to
		r.asked[key] = append(r.asked[key], workload.Requirement{Key: key, Operator: "In", Values: []string{value}})
		r.askedRenamed[key] = append(r.askedRenamed[key], workload.Requirement{Key: key, Operator: "In", Values: []string{to}})
	}
	for _, toleration := range f.Tolerations {
		renamed.Tolerations = append(renamed.Tolerations, r.toleration(toleration))
	}
	return renamed
}

// nameKey gives a key of a flavor another name, unless the workload names it.
func (r *renaming) nameKey(key string) {
	if _, own := r.own[key]; !own && r.keys[key] == "" {
		r.keys[key] = unused("label", func(name string) bool { return r.own[name] != nil || hasValue(r.keys, name) })
	}
}

func (r *renaming) toleration(t workload.Toleration) workload.Toleration {
	if t.Key == "" || t.Key == cordoned {
		return t
	}
	if r.taintKeys[t.Key] == nil && r.taintNames[t.Key] == "" {
		r.taintNames[t.Key] = unused("taint", func(name string) bool { return r.taintKeys[name] != nil || hasValue(r.taintNames, name) })
	}
	value := t.Value
	if value != "" && !r.taintKeys[t.Key][value] {
		value = r.value("taint/"+t.Key, value, "flavor")
	}
	return workload.Toleration{Key: cmp.Or(r.taintNames[t.Key], t.Key), Operator: t.Operator, Value: value, Effect: t.Effect}
}

// key returns what a key of a label is replaced by.
func (r *renaming) key(key string) string { return cmp.Or(r.keys[key], key) }

// value returns what a value is replaced by: the same for the same one, and different
// for others. One that the workload names under the key stays.
func (r *renaming) value(key, value, prefix string) string {
	if r.own[key][value] {
		return value
	}
	if r.values[key] == nil {
		r.values[key] = map[string]string{}
	}
	known, given := r.values[key][value]
	if !given {
		known = unused(prefix, func(name string) bool {
			return r.own[key][name] || r.taintKeys[key][name] || hasValue(r.values[key], name)
		})
		r.values[key][value] = known
	}
	return known
}

// unused returns the prefix with the first number with which it is not used.
func unused(prefix string, used func(string) bool) string {
	for n := 1; ; n++ {
		if name := prefix + "-" + strconv.Itoa(n); !used(name) {
			return name
		}
	}
}

func hasValue(m map[string]string, value string) bool {
	for _, v := range m {
		if v == value {
			return true
		}
	}
	return false
}
