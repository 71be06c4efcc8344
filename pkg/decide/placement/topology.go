package placement

import "muster.dev/muster/pkg/spec/workload"

// topology is the domains of a level: the values of a node label, or of those of several levels.
type topology struct {
	of     []int32 // domain by node slot; none where the label is missing
	values []string
	made   int64 // the value of Fleet.changes it is of
}

const none = -1

// mostTopologies bounds how many labels' domains are kept.
const mostTopologies = 16

// topologyOf returns the domains of a level, by first node name.
func (f *Fleet) topologyOf(key string) *topology {
	t := f.domains[key]
	if t != nil && t.made == f.changes {
		return t
	}
	if t == nil && len(f.domains) >= mostTopologies {
		clear(f.domains)
	}
	t = &topology{of: make([]int32, len(f.slots)), made: f.changes}
	numbers := map[string]int32{}
	for _, n := range f.inOrder() {
		value, labelled := workload.DomainOf(n.Labels, key)
		if !labelled {
			t.of[n.slot] = none
			continue
		}
		number, known := numbers[value]
		if !known {
			number = int32(len(t.values))
			numbers[value] = number
			t.values = append(t.values, value)
		}
		t.of[n.slot] = number
	}
	f.domains[key] = t
	return t
}
