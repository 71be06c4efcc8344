package quota

import (
	"cmp"
	"slices"
)

// Evens reports whether the shares in the tree become more even if the queue takes the
// charges from the other queue. The shares of the branches at each depth, from the root
// down, are compared in falling order; the first difference must be a smaller share.
// Such changes cannot form a cycle.
func (q *Queue) Evens(charges []Charge, other *Queue) bool {
	if q == other || !q.SameTree(other) {
		return false
	}
	changed := q.node.branch()
	for _, n := range other.node.branch() {
		if !slices.Contains(changed, n) {
			changed = append(changed, n)
		}
	}
	before := q.tree.standings(changed)
	start := q.tree.Begin()
	defer q.tree.Rollback(start)
	other.Release(charges)
	q.Allocate(charges)
	return slices.CompareFunc(q.tree.standings(changed), before, standing.compare) < 0
}

// standing is the share of a node of a depth. part orders nodes of equal share: all
// that they use beyond their quota, each resource as a part of what the parent can
// lend.
type standing struct {
	depth int
	share ExactShare
	part  fraction
}

func (s standing) compare(other standing) int {
	return cmp.Or(cmp.Compare(s.depth, other.depth), s.share.Compare(other.share), s.part.compare(other.part))
}

// standings returns the standings of the nodes by depth, the largest of each depth
// first.
func (t *Tree) standings(nodes []*node) []standing {
	all := make([]standing, len(nodes))
	for i, n := range nodes {
		all[i] = standing{depth: n.depth(), share: t.share(n)}
		for name, amount := range t.beyond(n) {
			if lendable := t.lendable(n.parent, name); lendable > 0 && amount > 0 {
				all[i].part = all[i].part.plus(partOf(amount, lendable, defaultWeight))
			}
		}
	}
	slices.SortFunc(all, func(a, b standing) int {
		if a.depth != b.depth {
			return cmp.Compare(a.depth, b.depth)
		}
		return -a.compare(b)
	})
	return all
}
