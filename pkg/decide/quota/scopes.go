package quota

import (
	"maps"
	"slices"
)

// Prefixes of the names of scopes.
const (
	QueueScope  = "clusterQueue "
	CohortScope = "cohort "
)

// Scopes returns the names of the queue and the cohorts above it, for which its charges
// count.
func (q *Queue) Scopes() []string {
	scopes := []string{QueueScope + q.Name}
	for n := q.node.parent; n != nil; n = n.parent {
		scopes = append(scopes, CohortScope+n.name)
	}
	return scopes
}

// Bound is the most that may ever be used of a resource of a flavor in a scope.
type Bound struct {
	Scope string
	FlavorResource
	Amount int64
}

// Bounds returns the bounds of all scopes: what could be used by way of a
// ClusterQueue or cohort if nothing else was in use, and what those below it
// keep for themselves.
func (t *Tree) Bounds() []Bound {
	var bounds []Bound
	list := func(scope string, n *node) {
		for i, fr := range t.names {
			if fr.Flavor != "" {
				bounds = append(bounds, Bound{scope, fr, n.potential(i) + n.kept(i)})
			}
		}
	}
	for _, q := range t.sorted {
		list(QueueScope+q.Name, q.node)
	}
	for _, name := range slices.Sorted(maps.Keys(t.cohorts)) {
		list(CohortScope+name, t.cohorts[name])
	}
	return bounds
}

// kept is the part of the quota that the nodes below do not lend.
func (n *node) kept(i int) int64 {
	sum := int64(0)
	for _, child := range n.children {
		sum = add(sum, add(child.guaranteed(i), child.kept(i)))
	}
	return sum
}
