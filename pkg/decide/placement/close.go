package placement

import "muster.dev/muster/pkg/spec/capacity"

// closed is more than a node has of any resource.
const closed = 1 << 61

// Close keeps every pod from nodes, within a what-if, also when gangs on them are released.
func (f *Fleet) Close(nodes []string) {
	for _, name := range nodes {
		if f.nodes[name] == nil {
			continue
		}
		n, was := f.open(name)
		all := make(vector, len(n.offered))
		for column, amount := range n.offered {
			if amount > 0 {
				all[column] = closed
			}
		}
		n.taken = n.taken.plus(all, 1)
		f.settle(n, was)
	}
}

// Where returns the names of the nodes that match, in order.
func (f *Fleet) Where(match func(*capacity.Node) bool) []string {
	var names []string
	for _, n := range f.inOrder() {
		if match(&n.Node) {
			names = append(names, n.Name)
		}
	}
	return names
}

// Only returns a fleet of some of the nodes, with what is free on them now.
func (f *Fleet) Only(nodes []string) *Fleet {
	only := NewFleet()
	for _, name := range nodes {
		n := f.nodes[name]
		if n == nil || !n.present {
			continue
		}
		left := n.Node
		left.Allocatable, left.Unmanaged, left.UsedPorts = f.columns.list(n.free), nil, n.inUse
		for resource, amount := range left.Allocatable {
			left.Allocatable[resource] = max(0, amount)
		}
		only.SetNode(left)
	}
	return only
}
