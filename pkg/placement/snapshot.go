package placement

import (
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

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
