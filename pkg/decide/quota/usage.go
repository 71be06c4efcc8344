package quota

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// declares reports whether the queue has quota for the pair.
func (q *Queue) declares(fr FlavorResource) (int, bool) {
	i, known := q.tree.index[fr]
	if !known || fr.Flavor == "" {
		return 0, false
	}
	_, declared := q.node.quota[i]
	return i, declared
}

// Available returns how much more of a resource of a flavor the queue may use now; zero
// where it has no quota.
func (q *Queue) Available(fr FlavorResource) int64 {
	if i, declared := q.declares(fr); declared {
		return max(0, q.node.available(i))
	}
	return 0
}

// Fits reports whether the queue may use the charges in addition to its usage.
func (q *Queue) Fits(charges []Charge) bool { return q.Over(charges) == nil }

// Over returns what keeps the queue from using the charges, nil when nothing
// does.
func (q *Queue) Over(charges []Charge) *Over {
	for _, c := range charges {
		if c.Flavor == "" || c.Amount <= 0 {
			continue
		}
		i, declared := q.declares(c.FlavorResource)
		if !declared {
			return &Over{Charge: c, Queue: q.Name, Where: "clusterQueue " + q.Name, Limit: "coveredResources"}
		}
		if c.Amount > q.node.available(i) {
			return q.over(c, i)
		}
	}
	return nil
}

// Over is a charge that is more than quota allows, and by which bound.
type Over struct {
	Charge
	Queue     string `json:"queue"`
	Available int64  `json:"available"` // now
	Potential int64  `json:"potential"` // if nothing was in use
	Nominal   int64  `json:"nominal"`   // of the queue
	Used      int64  `json:"used"`      // by the queue
	// Where is the node of the tree whose bound is met first: "clusterQueue NAME"
	// or "cohort NAME".
	Where string `json:"where"`
	// Limit is which bound: "nominalQuota" or "borrowingLimit".
	Limit string `json:"limit"`
}

func (q *Queue) over(c Charge, i int) *Over {
	o := &Over{
		Charge: c, Queue: q.Name, Available: q.node.available(i), Potential: q.node.potential(i),
		Nominal: q.node.quota[i].nominal, Used: q.node.usage[i], Where: "clusterQueue " + q.Name, Limit: "nominalQuota",
	}
	asked := c.Amount
	for n := q.node; n != nil; n = n.parent {
		if n != q.node {
			o.Where = "cohort " + n.name
		}
		if n.parent == nil {
			break
		}
		local := max(0, n.guaranteed(i)-n.usage[i])
		own, ok := n.quota[i]
		if ok && own.borrow >= 0 && asked-local > n.subtree[i]-n.guaranteed(i)-n.overflow(i)+own.borrow {
			o.Limit = "borrowingLimit"
			return o
		}
		asked -= local
	}
	return o
}

// Borrows reports whether the queue would use more than its own quota with the
// charges.
func (q *Queue) Borrows(with []Charge) bool {
	for _, c := range with {
		if i, ok := q.declares(c.FlavorResource); ok && add(q.node.usage[i], c.Amount) > q.node.subtree[i] {
			return true
		}
	}
	return false
}

// ExceedsNominal reports whether the charges alone are more than the own quota.
func (q *Queue) ExceedsNominal(charges []Charge) bool {
	for _, c := range charges {
		if i, ok := q.declares(c.FlavorResource); ok && c.Amount > q.node.quota[i].nominal {
			return true
		}
	}
	return false
}

// ExceedsPotential reports whether the charges are more than the queue could
// use if nothing was in use.
func (q *Queue) ExceedsPotential(charges []Charge) bool {
	for _, c := range charges {
		if c.Flavor == "" || c.Amount <= 0 {
			continue
		}
		if i, ok := q.declares(c.FlavorResource); !ok || c.Amount > q.node.potential(i) {
			return true
		}
	}
	return false
}

// MayReclaimFrom reports whether the other queue, and each cohort between it and
// the lowest one that both queues are in, uses more than its own quota of
// something in the charges: what a queue uses within its own quota cannot be reclaimed.
func (q *Queue) MayReclaimFrom(other *Queue, charges []Charge) bool {
	if q == other || !q.SameTree(other) {
		return false
	}
	_, branch := branches(q.node, other.node)
	for n := other.node; ; n = n.parent {
		over := false
		for _, c := range charges {
			if i, known := q.tree.index[c.FlavorResource]; known && c.Flavor != "" && n.usage[i] > n.subtree[i] {
				over = true
			}
		}
		if !over {
			return false
		}
		if n == branch {
			return true
		}
	}
}

// Overused reports whether usage through the queue exceeds quota for anything in the
// charges, as it does after quota was reduced or while evicted gangs still have theirs.
func (q *Queue) Overused(of []Charge) bool {
	for _, c := range of {
		if i, ok := q.declares(c.FlavorResource); ok && q.node.available(i) < 0 {
			return true
		}
	}
	return false
}

// Line is what a queue has and uses of a resource of a flavor.
type Line struct {
	FlavorResource
	Nominal        int64  `json:"nominal"`
	BorrowingLimit *int64 `json:"borrowingLimit,omitempty"`
	LendingLimit   *int64 `json:"lendingLimit,omitempty"`
	Used           int64  `json:"used"`
	Borrowed       int64  `json:"borrowed"`
	// Lent is how much of the quota others use. Of several that could have lent it, each has
	// lent in proportion to what it does not use.
	Lent int64 `json:"lent,omitempty"`
	// Available is the amount that the queue could use in addition now.
	Available int64 `json:"available"`
	// Unbounded: no quota bounds it; only Used means something.
	Unbounded bool `json:"unbounded,omitempty"`
}

// Lines returns the quota and usage of the queue, by flavor and resource.
func (q *Queue) Lines() []Line {
	var lines []Line
	for i, fr := range q.tree.names {
		own, declared := q.node.quota[i]
		if !declared && q.node.usage[i] == 0 {
			continue
		}
		line := Line{FlavorResource: fr, Used: q.node.usage[i], Unbounded: !declared}
		if declared {
			line.Nominal, line.BorrowingLimit, line.LendingLimit = own.nominal, limit(own.borrow), limit(own.lend)
			line.Borrowed, line.Available = max(0, line.Used-own.nominal), max(0, q.node.available(i))
			line.Lent = q.node.lent(i)
		}
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Flavor, b.Flavor), cmp.Compare(a.Resource, b.Resource))
	})
	return lines
}

func limit(amount int64) *int64 {
	if amount < 0 {
		return nil
	}
	return &amount
}

// Used returns the usage of the queue, over all flavors.
func (q *Queue) Used() resource.List {
	used := resource.List{}
	for i, fr := range q.tree.names {
		if q.node.usage[i] != 0 {
			used[fr.Resource] = add(used[fr.Resource], q.node.usage[i])
		}
	}
	return used
}
