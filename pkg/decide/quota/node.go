package quota

import "muster.dev/muster/pkg/spec/resource"

// node is a ClusterQueue or a Cohort in its tree. The slices are indexed by
// Tree.index; usage and quota follow Kueue's resource nodes
// (pkg/cache/scheduler/resource_node.go): a node keeps its guaranteed quota for
// itself, lends the rest to its parent, and what it uses beyond the guaranteed
// part is usage of the parent.
type node struct {
	name       string
	parent     *node
	children   []*node // of a cohort, by name
	height     int     // of the tree below; 0 for a ClusterQueue
	weight     int64   // thousandths
	quota      map[int]limits
	subtree    []int64 // own quota and what the children lend
	usage      []int64
	pastRecord // of a ClusterQueue
}

// limits are a node's own quota; -1 is no limit.
type limits struct {
	nominal, borrow, lend int64
}

// guaranteed is the part of the subtree's quota that is not lent.
func (n *node) guaranteed(i int) int64 {
	if own, ok := n.quota[i]; ok && own.lend >= 0 {
		return max(0, n.subtree[i]-own.lend)
	}
	return 0
}

// overflow is the usage that counts at the parent.
func (n *node) overflow(i int) int64 { return max(0, n.usage[i]-n.guaranteed(i)) }

// available is how much more may be used through this node. It is negative after quota
// was reduced.
func (n *node) available(i int) int64 {
	if n.parent == nil {
		return n.subtree[i] - n.usage[i]
	}
	local := max(0, n.guaranteed(i)-n.usage[i])
	above := n.parent.available(i)
	if own, ok := n.quota[i]; ok && own.borrow >= 0 {
		stored := n.subtree[i] - n.guaranteed(i)
		above = min(above, stored-n.overflow(i)+own.borrow)
	}
	return local + above
}

// potential is how much could be used if nothing else was in use.
func (n *node) potential(i int) int64 {
	if n.parent == nil {
		return n.subtree[i]
	}
	most := n.guaranteed(i) + n.parent.potential(i)
	if own, ok := n.quota[i]; ok && own.borrow >= 0 {
		most = min(most, n.subtree[i]+own.borrow)
	}
	return most
}

func add(a, b int64) int64 { return resource.SaturatingAdd(a, b) }
