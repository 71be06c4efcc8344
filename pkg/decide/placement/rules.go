package placement

import (
	"cmp"
	"slices"
)

// applyRules reduces the counts of a domain to those that the rules of its level allow,
// and that fit the multiples and bindings of the levels within.
func (s *search) applyRules(fm *form, own *paretoFrontier) {
	for i, r := range s.rules {
		if s.spent() {
			return
		}
		if r.key != s.levels[fm.level] || r.kind == bind {
			continue
		}
		floor := 0
		if r.kind == spread && fm.counted[i] {
			floor = s.floor[i]
			own.low[r.kinds[0]] = max(own.low[r.kinds[0]], floor)
		}
		own.largest, own.from = s.obey(r, floor, own.largest, own.from)
	}
	if s.spend(2 * len(own.largest) * s.perCounts()); s.spent() { // rounding, and leaving out
		return
	}
	units := s.units[fm.level]
	for k, unit := range units {
		own.low[k] = (own.low[k] + unit - 1) / unit * unit
	}
	for i, c := range own.largest {
		c = slices.Clone(c)
		for k, unit := range units {
			c[k] = c[k] / unit * unit
		}
		own.largest[i] = c
	}
	for range s.rules { // one binding may undo what another has seen
		for _, r := range s.rules {
			if s.spent() {
				return
			}
			if r.kind == bind && slices.Index(s.levels, r.key) >= fm.level {
				own.largest, own.from = s.obey(r, 0, own.largest, own.from)
				s.bindLow(r, own.low)
			}
		}
	}
	kept, from := own.largest[:0:0], own.from[:0:0]
	for i, c := range own.largest {
		if c.covers(own.low) {
			kept, from = append(kept, c), append(from, own.from[i])
		}
	}
	own.largest, own.from = kept, from
}

// bindLow sets a minimum for all kinds of a bind rule in a domain that needs a pod of
// one of them.
func (s *search) bindLow(r rule, low countVector) {
	if slices.ContainsFunc(r.kinds, func(k int) bool { return low[k] > 0 }) {
		for _, k := range r.kinds {
			low[k] = max(low[k], s.most[k])
		}
	}
}

// setUnits computes the multiples in which the number of pods in a domain can change.
func (s *search) setUnits() {
	unit := make(countVector, len(s.kinds))
	for i := range unit {
		unit[i] = 1
	}
	s.units = make([]countVector, len(s.levels))
	for level := len(s.levels) - 1; level >= 0; level-- {
		for _, r := range s.rules {
			if r.key != s.levels[level] {
				continue
			}
			for _, k := range r.kinds {
				switch r.kind {
				case slice:
					unit[k] = max(unit[k], r.size)
				case bind:
					unit[k] = max(unit[k], s.most[k])
				}
			}
		}
		s.units[level] = slices.Clone(unit)
	}
}

// obey returns the count vectors that a rule allows in one domain, the largest first.
func (s *search) obey(r rule, floor int, all []countVector, from [][2]int) ([]countVector, [][2]int) {
	if s.spend(2 * len(all) * s.perCounts()); s.spent() { // a rule may make two of one
		return nil, nil
	}
	var kept []countVector
	var origin [][2]int
	keep := func(c countVector, i int) { kept, origin = append(kept, c), append(origin, from[i]) }
	with := func(c countVector, kind, pods int) countVector {
		changed := slices.Clone(c)
		changed[kind] = pods
		return changed
	}
	for i, c := range all {
		switch a := r.kinds[0]; {
		case r.kind == slice:
			keep(with(c, a, c[a]/r.size*r.size), i)
		case r.kind == bind:
			whole := !slices.ContainsFunc(r.kinds, func(k int) bool { return c[k] < s.kinds[k].count })
			for _, k := range r.kinds {
				if !whole {
					c = with(c, k, 0)
				}
			}
			keep(c, i)
		case r.kind == spread:
			if c[a] >= floor {
				keep(with(c, a, min(c[a], floor+r.size)), i)
			}
		case r.kinds[0] == r.kinds[1]:
			keep(with(c, a, min(c[a], 1)), i)
		case c[r.kinds[0]] > 0 && c[r.kinds[1]] > 0:
			keep(with(c, r.kinds[0], 0), i)
			keep(with(c, r.kinds[1], 0), i)
		default:
			keep(c, i)
		}
	}
	return kept, origin
}

// compareRules orders rules as a domain applies them: first those that only lower a
// number, then multiples, then least numbers.
func compareRules(a, b rule) int {
	rank := func(r rule) int {
		switch r.kind {
		case apart:
			return 0
		case spread:
			return 1
		case slice:
			return 2
		}
		return 3
	}
	return cmp.Compare(rank(a), rank(b))
}
