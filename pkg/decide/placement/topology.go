package placement

import (
	"math"

	"muster.dev/muster/pkg/spec/workload"
)

// topology is the domains of a level: the values of a node label, or of those of several levels.
type topology struct {
	of     []int32 // domain by node slot; none where the label is missing
	values []string
	made   int64 // the value of Fleet.changes it is of
	used   int64 // the value of Fleet.asked when it was asked for last
}

const none = -1

// mostTopologies bounds how many levels' domains are kept: those of four Topologies with as many
// levels as one may have. Workloads name levels, too, so there may be any number.
const mostTopologies = 4 * workload.MostLevels

// topologyOf returns the domains of a level, by first node name.
func (f *Fleet) topologyOf(key string) *topology {
	f.asked++
	t := f.domains[key]
	if t != nil && t.made == f.changes {
		t.used = f.asked
		return t
	}
	if t == nil && len(f.domains) >= mostTopologies {
		f.dropTopology()
	}
	t = f.newTopology(key)
	f.domains[key] = t
	return t
}

// dropTopology forgets the domains that were asked for longest ago.
func (f *Fleet) dropTopology() {
	oldest, at := "", int64(math.MaxInt64)
	for key, t := range f.domains {
		if t.used < at { // no two are equal
			oldest, at = key, t.used
		}
	}
	delete(f.domains, oldest)
}

// newTopology finds the domains of a level.
func (f *Fleet) newTopology(key string) *topology {
	t := &topology{of: make([]int32, len(f.slots)), made: f.changes, used: f.asked}
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
	return t
}
