package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Observed is a node as SetNode and SetExtra have set it.
type Observed struct {
	Node  capacity.Node
	Extra resource.List
}

// Observed returns up to most of the nodes that are present, from a place on and in no
// order, and the place of the next ones; -1 when there are none. A node that is added
// later has a later place.
func (f *Fleet) Observed(from, most int) (nodes []Observed, next int) {
	end := min(from+most, len(f.slots))
	for _, n := range f.slots[min(from, end):end] {
		if n != nil && n.present {
			nodes = append(nodes, Observed{n.Node, f.columns.list(n.extra)})
		}
	}
	if end == len(f.slots) {
		return nodes, -1
	}
	return nodes, end
}

// View is a node as a gang finds it.
type View struct {
	Node  capacity.Node
	Free  resource.List
	Ports []workload.HostPort // in use
}

// Views returns all nodes that are present, by name.
func (f *Fleet) Views() []View {
	views := make([]View, 0, f.size)
	for _, n := range f.inOrder() {
		views = append(views, View{n.Node, f.columns.list(n.free), slices.Clone(n.inUse)})
	}
	return views
}
