package placement

import (
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Observed is a node as it was set, and what was said to be taken there outside any
// reservation.
type Observed struct {
	Node  capacity.Node
	Extra resource.List
}

// Observed returns all nodes that are present, by name.
func (f *Fleet) Observed() []Observed {
	nodes := make([]Observed, 0, f.size)
	for _, n := range f.inOrder() {
		nodes = append(nodes, Observed{n.Node, f.columns.list(n.extra)})
	}
	return nodes
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
