package quota

import "math/bits"

// lent is how much of what the node offers to others they use: the nodes beside it, and those
// beside its ancestors. Kueue has no owner of what is borrowed, because all borrow from one pool.
// Here each that offers something unused lends in proportion to that, so what the nodes of a
// cohort and the cohort itself lend is what is borrowed in it and from it.
func (n *node) lent(i int) int64 {
	if n.parent == nil {
		return 0
	}
	taken := n.parent.lent(i) // by those beside the parent
	var before, unused, sum int64
	for _, child := range n.parent.children {
		if child == n {
			before, unused = sum, child.unused(i)
		}
		sum = add(sum, child.unused(i))
		taken = add(taken, max(0, -child.surplus(i)))
	}
	sum = add(sum, max(0, n.parent.quota[i].nominal)) // the parent's own, which is the last
	if taken >= sum {
		return unused // the rest is borrowed from above
	}
	return part(before+unused, taken, sum) - part(before, taken, sum)
}

// surplus is what the node gives its parent beyond what it takes; negative where it borrows.
func (n *node) surplus(i int) int64 { return n.subtree[i] - n.guaranteed(i) - n.overflow(i) }

// unused is what the node offers its parent and does not use itself.
func (n *node) unused(i int) int64 { return max(0, n.surplus(i)) }

// part is of * taken / sum, rounded down, for of of up to sum and taken below it.
func part(of, taken, sum int64) int64 {
	hi, lo := bits.Mul64(uint64(of), uint64(taken))
	quotient, _ := bits.Div64(hi, lo, uint64(sum))
	return int64(quotient)
}
