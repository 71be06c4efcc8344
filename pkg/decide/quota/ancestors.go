package quota

// SameTree reports whether both queues are in one tree of cohorts.
func (q *Queue) SameTree(other *Queue) bool { return q.node.root() == other.node.root() }

// Root returns the name of the queue's tree: its topmost cohort, or the queue itself.
func (q *Queue) Root() string {
	if root := q.node.root(); root != q.node {
		return "cohort " + root.name
	}
	return "clusterQueue " + q.Name
}

func (n *node) root() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}

func (n *node) depth() int {
	depth := 0
	for ; n.parent != nil; n = n.parent {
		depth++
	}
	return depth
}

// branches returns the ancestors of both nodes, or they themselves, that are
// children of their lowest common ancestor (Kueue's almost-LCAs).
func branches(a, b *node) (*node, *node) {
	above := map[*node]*node{} // ancestor of a: its child on the way to a
	for n := a; n != nil; n = n.parent {
		if n.parent != nil {
			above[n.parent] = n
		}
	}
	for n := b; n.parent != nil; n = n.parent {
		if child, common := above[n.parent]; common {
			return child, n
		}
	}
	return a, b
}

// branch returns the node and its ancestors, without the root.
func (n *node) branch() []*node {
	var nodes []*node
	for ; n.parent != nil; n = n.parent {
		nodes = append(nodes, n)
	}
	return nodes
}
