package quota

import (
	"maps"
	"slices"
)

// Copy returns an independent tree with the same configuration and usage, past usage
// included. The cost is linear in the number of queues and cohorts.
func (t *Tree) Copy() *Tree {
	c := *t
	c.usageBefore = maps.Clone(t.usageBefore)
	c.usageChanged = map[string]bool{} // past usage is stored from the original only
	c.index, c.names, c.undoLog, c.savepoints = maps.Clone(t.index), slices.Clone(t.names), nil, 0
	c.localUsages = make(map[string]*localUsage, len(t.localUsages))
	for name, u := range t.localUsages {
		c.localUsages[name] = u.copied()
	}
	nodes := make(map[*node]*node, len(t.sorted)+len(t.cohorts))
	c.queues, c.sorted = make(map[string]*Queue, len(t.sorted)), make([]*Queue, len(t.sorted))
	for i, q := range t.sorted {
		copied := &Queue{ClusterQueue: q.ClusterQueue, tree: &c, node: q.node.copied(nodes)}
		c.sorted[i], c.queues[q.Name] = copied, copied
	}
	c.cohorts = make(map[string]*node, len(t.cohorts))
	for name, n := range t.cohorts {
		c.cohorts[name] = n.copied(nodes)
	}
	return &c
}

// copied returns the copy of a node, and adds it and all nodes around it to the known
// ones.
func (n *node) copied(known map[*node]*node) *node {
	if n == nil {
		return nil
	}
	if c := known[n]; c != nil {
		return c
	}
	c := *n
	known[n] = &c
	c.subtree, c.usage, c.pastRecord = slices.Clone(n.subtree), slices.Clone(n.usage), n.pastRecord.copied()
	c.parent = n.parent.copied(known)
	c.children = make([]*node, len(n.children))
	for i, child := range n.children {
		c.children[i] = child.copied(known)
	}
	return &c
}

func (p pastRecord) copied() pastRecord {
	p.history.Used, p.present.Used = maps.Clone(p.history.Used), maps.Clone(p.present.Used)
	return p
}

func (u *localUsage) copied() *localUsage { return &localUsage{u.pastRecord.copied(), u.used.Clone()} }
