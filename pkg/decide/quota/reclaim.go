package quota

// Reclaims reports whether the policy evicts gangs of other queues.
func (p *Preemption) Reclaims() bool {
	return p.ReclaimWithinCohort != "" && p.ReclaimWithinCohort != Never
}

// Lacking returns the charges that are more than what is available now.
func (q *Queue) Lacking(charges []Charge) []Charge {
	var lacking []Charge
	for _, c := range charges {
		if c.Flavor != "" && c.Amount > q.Available(c.FlavorResource) {
			lacking = append(lacking, c)
		}
	}
	return lacking
}

// UnderNominal reports whether the queue uses less than its nominal quota of everything
// in the charges.
func (q *Queue) UnderNominal(charges []Charge) bool {
	for _, c := range charges {
		if i, declared := q.declares(c.FlavorResource); declared && q.node.usage[i] >= q.node.quota[i].nominal {
			return false
		}
	}
	return true
}

// BorrowingLevel returns how far up the tree quota for the charges comes from: the height
// of the lowest cohort that has it, with what runs, and of the whole tree if none has;
// zero if the queue itself has it.
func (q *Queue) BorrowingLevel(charges []Charge) int {
	level := 0
	for _, c := range charges {
		if i, declared := q.declares(c.FlavorResource); declared && c.Amount > 0 {
			n, _ := q.node.lowestWith(i, c.Amount)
			level = max(level, n.height)
		}
	}
	return level
}

// SubtreeHas reports whether the queue, or a cohort above it and below the root, has quota
// for the charge with what runs.
func (q *Queue) SubtreeHas(c Charge) bool {
	i, declared := q.declares(c.FlavorResource)
	if !declared {
		return false
	}
	n, has := q.node.lowestWith(i, c.Amount)
	return has && n.parent != nil
}

// lowestWith returns the lowest of the node and its ancestors whose quota has the amount
// beyond its usage; the root and false if none has. What a node keeps for itself is not
// asked of its parent.
func (n *node) lowestWith(i int, amount int64) (*node, bool) {
	for ; ; n = n.parent {
		if add(n.usage[i], amount) <= n.subtree[i] {
			return n, true
		}
		if n.parent == nil {
			return n, false
		}
		amount -= max(0, n.guaranteed(i)-n.usage[i])
	}
}

// HasAdvantageOver reports whether the queue, or a cohort above it that the other queue is
// not in, has quota for all charges with what runs. What the other queue has beyond its
// own quota then comes from there, or from farther away.
func (q *Queue) HasAdvantageOver(other *Queue, charges []Charge) bool {
	branch, _ := branches(q.node, other.node)
	left := make([]int64, len(charges))
	for c := range charges {
		left[c] = charges[c].Amount
	}
	for n := q.node; ; n = n.parent {
		fits := true
		for c := range charges {
			i, declared := q.declares(charges[c].FlavorResource)
			if !declared {
				continue
			}
			fits = fits && add(n.usage[i], left[c]) <= n.subtree[i]
			left[c] = max(0, left[c]-max(0, n.guaranteed(i)-n.usage[i]))
		}
		if fits || n == branch {
			return fits
		}
	}
}

// Reservable returns what is kept of the charges while the queue waits for quota: within
// its borrowing limit what it asks for, and if it need not borrow what is unused of its
// nominal quota.
func (q *Queue) Reservable(a Assess) []Charge {
	var kept []Charge
	for _, c := range a.Charges {
		i, declared := q.declares(c.FlavorResource)
		if !declared {
			continue
		}
		own, used := q.node.quota[i], q.node.usage[i]
		switch {
		case a.Level == 0:
			c.Amount = min(c.Amount, own.nominal-used)
		case own.borrow >= 0:
			c.Amount = min(c.Amount, own.nominal+own.borrow-used)
		}
		if c.Amount > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}
