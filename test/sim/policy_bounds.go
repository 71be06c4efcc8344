package sim

import "slices"

// scopes are what a use of the queue counts for: itself and the cohorts above.
func (p policy) scopes(queue string) []string {
	scopes := []string{"clusterQueue " + queue}
	for cohort := p.queue(queue).cohort; cohort != ""; cohort = p.above[cohort] {
		scopes = append(scopes, "cohort "+cohort)
	}
	return scopes
}

// keeps is what of its nominal quota a queue does not lend.
func (s share) keeps() int64 {
	switch {
	case s.cohort == "":
		return s.nominal
	case s.lend == noLimit:
		return 0
	}
	return max(0, s.nominal-s.lend)
}

// lendable is what all below and of a cohort can be lent within it.
func (p policy) lendable(cohort string) int64 {
	sum := p.own[cohort]
	for _, s := range p.queues {
		if s.cohort == cohort {
			sum += s.nominal - s.keeps()
		}
	}
	for below, above := range p.above {
		if above == cohort {
			sum += p.lendable(below)
		}
	}
	return sum
}

// beyond is what the queues below a cohort use beyond what they keep for themselves.
func (p policy) beyond(cohort string, used map[string]int64) (sum int64) {
	for _, s := range p.queues {
		if s.cohort == cohort {
			sum += max(0, used[s.name]-s.keeps())
		}
	}
	for below, above := range p.above {
		if above == cohort {
			sum += p.beyond(below, used)
		}
	}
	return sum
}

// excess returns by how much each queue and each cohort uses more than it may, given
// what the queues use; only those that do.
func (p policy) excess(used map[string]int64) map[string]int64 {
	excess := map[string]int64{}
	note := func(scope string, amount int64) {
		if amount > 0 {
			excess[scope] = amount
		}
	}
	for _, s := range p.queues {
		switch {
		case s.cohort == "":
			note("clusterQueue "+s.name, used[s.name]-s.nominal)
		case s.borrow != noLimit:
			note("clusterQueue "+s.name, used[s.name]-s.nominal-s.borrow)
		}
	}
	for cohort := range p.own {
		if p.above[cohort] == "" {
			note("cohort "+cohort, p.beyond(cohort, used)-p.lendable(cohort))
		}
	}
	return excess
}

// bounds are the rows of the quota ledger: the most that may ever be used by way of
// a queue or cohort if all others used nothing.
func (p policy) bounds() map[usageKey]int64 {
	bounds := map[usageKey]int64{}
	for _, s := range p.queues {
		bound := s.nominal
		if root := p.root(s.cohort); root != "" {
			bound = s.keeps() + p.lendable(root)
			if s.borrow != noLimit {
				bound = min(bound, s.nominal+s.borrow)
			}
		}
		bounds[usageKey{"clusterQueue " + s.name, ruledFlavor, ruledResource}] = bound
	}
	for cohort := range p.own {
		kept := int64(0)
		for _, s := range p.queues {
			if slices.Contains(p.scopes(s.name), "cohort "+cohort) {
				kept += s.keeps()
			}
		}
		bounds[usageKey{"cohort " + cohort, ruledFlavor, ruledResource}] = p.lendable(p.root(cohort)) + kept
	}
	return bounds
}

// root is the highest cohort above one; empty for none.
func (p policy) root(cohort string) string {
	for p.above[cohort] != "" {
		cohort = p.above[cohort]
	}
	return cohort
}
