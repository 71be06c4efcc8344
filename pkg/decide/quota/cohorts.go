package quota

import (
	"cmp"
	"maps"
	"slices"
)

// CohortUsage is a cohort with what all ClusterQueues below it have and use together.
type CohortUsage struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
	// Quota has of each flavor and resource the sum of the nominal quota of the cohort and
	// of all below it, what of it is in use, and what the cohort borrows from above and lends to others.
	Quota []Line `json:"quota,omitempty"`
	// Share is the weighted dominant share in the parent, in millionths; zero at the root.
	Share Share `json:"share,omitempty"`
}

// Cohorts returns all cohorts, a parent before its children, otherwise by name.
func (t *Tree) Cohorts() []CohortUsage {
	below := map[*node][]*node{} // cohorts by parent; nil for those without
	for _, name := range slices.Sorted(maps.Keys(t.cohorts)) {
		n := t.cohorts[name]
		below[n.parent] = append(below[n.parent], n)
	}
	var all []CohortUsage
	var list func(parent *node)
	list = func(parent *node) {
		for _, n := range below[parent] {
			use := CohortUsage{Name: n.name, Quota: t.linesBelow(n)}
			if parent != nil {
				use.Parent, use.Share = parent.name, t.share(n).Share
			}
			all = append(all, use)
			list(n)
		}
	}
	list(nil)
	return all
}

// linesBelow sums quota and usage of a cohort and of all below it.
func (t *Tree) linesBelow(n *node) []Line {
	var lines []Line
	for i, fr := range t.names {
		nominal, used, declared := n.sums(i)
		if !declared {
			continue
		}
		own := n.quota[i]
		line := Line{FlavorResource: fr, Nominal: nominal, Used: used, Borrowed: max(0, used-nominal), Lent: n.lent(i), Available: max(0, n.available(i))}
		if _, has := n.quota[i]; has {
			line.BorrowingLimit, line.LendingLimit = limit(own.borrow), limit(own.lend)
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	})
	return lines
}

// sums adds the nominal quota of the node and of all below it, and what their ClusterQueues
// use; declared is whether any of them has quota of it.
func (n *node) sums(i int) (nominal, used int64, declared bool) {
	own, declared := n.quota[i]
	nominal = own.nominal
	if n.height == 0 {
		used = n.usage[i]
	}
	for _, child := range n.children {
		more, uses, has := child.sums(i)
		nominal, used, declared = add(nominal, more), add(used, uses), declared || has
	}
	return nominal, used, declared
}
