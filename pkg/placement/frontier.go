package placement

import (
	"cmp"
	"slices"
)

// counts is how many pods of each kind.
type counts []int

func (c counts) covers(other counts) bool {
	for i := range c {
		if c[i] < other[i] {
			return false
		}
	}
	return true
}

// frontier is what some nodes take together: the largest counts, none of which
// covers another. Whatever one of them covers is possible too, rules on
// multiples and least numbers aside. It remembers how each came about.
type frontier struct {
	largest []counts
	// from says of which of left and right each is the sum, or, when right is
	// nil, of which of left it is what rules leave.
	from        [][2]int
	left, right *frontier
	form        *form // of a single domain or node
	low         counts
	spans       int // number of domains or nodes
}

// sum returns what the nodes of both take together, no more than most of each
// kind.
func (s *search) sum(a, b *frontier) *frontier {
	out := &frontier{left: a, right: b, spans: a.spans + b.spans, low: make(counts, len(s.most))}
	for i := range out.low {
		out.low[i] = a.low[i] + b.low[i]
	}
	for i, x := range a.largest {
		for j, y := range b.largest {
			if s.spend(s.perCounts()); s.spent() {
				return out
			}
			total := make(counts, len(x))
			for k := range x {
				total[k] = min(s.most[k], x[k]+y[k])
			}
			out.largest = append(out.largest, total)
			out.from = append(out.from, [2]int{i, j})
		}
	}
	s.prune(out)
	return out
}

// times returns what n domains or nodes that are alike take together.
func (s *search) times(a *frontier, n int) *frontier {
	if n == 1 || s.spent() {
		return a
	}
	half := s.times(a, n/2)
	if n%2 == 0 && !s.enough(half) {
		return s.sum(half, half)
	}
	if s.enough(half) {
		return half
	}
	return s.sum(s.sum(half, half), a)
}

// enough reports whether more nodes cannot matter.
func (s *search) enough(f *frontier) bool {
	return !s.floors && len(f.largest) == 1 && slices.Equal(f.largest[0], s.most)
}

// prune drops counts that others cover.
func (s *search) prune(f *frontier) {
	if len(f.largest) < 2 {
		return
	}
	order := make([]int, len(f.largest))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(f.largest[j], f.largest[i]) })
	var largest []counts
	var from [][2]int
	best := -1 // of the second kind, when there are two
	for _, i := range order {
		c := f.largest[i]
		if len(c) <= 2 {
			second := 0
			if len(c) == 2 {
				second = c[1]
			}
			if second <= best {
				continue
			}
			best = second
		} else {
			if s.spent() {
				return
			}
			by := slices.IndexFunc(largest, func(kept counts) bool { return kept.covers(c) })
			if by >= 0 {
				s.spend(1 + by/16)
				continue
			}
			s.spend(1 + len(largest)/16)
		}
		largest, from = append(largest, c), append(from, f.from[i])
	}
	f.largest, f.from = largest, from
}

// alone returns what a single node of a group takes: every mix of kinds that
// leaves no room for one pod more.
func (s *search) alone(g *group) []counts {
	var mixes []counts
	current := make(counts, len(s.kinds))
	var fill func(i int, free vector)
	fill = func(i int, free vector) {
		if i == len(s.kinds) {
			s.spend(s.perCounts())
			mixes = append(mixes, slices.Clone(current))
			return
		}
		most := s.onGroup(i, g, free)
		least := 0
		if i == len(s.kinds)-1 && !s.apartOnNode(i) {
			least = most // the last one takes what is left
		}
		for pods := most; pods >= least && !s.spent(); pods-- {
			s.spend(1 + (len(free)+len(s.rules))/16)
			if pods > 0 && s.conflict(i, current) {
				continue
			}
			current[i] = pods
			left := free
			if pods > 0 {
				left = s.kinds[i].minus(free, pods)
			}
			fill(i+1, left)
		}
		current[i] = 0
	}
	fill(0, g.free)
	f := &frontier{largest: mixes, from: make([][2]int, len(mixes))}
	s.prune(f)
	return f.largest
}

// onGroup returns how many pods of a kind a node of the group takes with so much
// free.
func (s *search) onGroup(i int, g *group, free vector) int {
	k := s.kinds[i]
	if k.on(g, 1) == 0 {
		return 0
	}
	return k.fits(free, min(k.most, s.most[i]))
}

// apartOnNode reports whether the kind keeps away from another on a node.
func (s *search) apartOnNode(i int) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.what == apart && r.key == perNode && slices.Contains(r.kinds, i) })
}

// conflict reports whether a kind may not join what is on a node.
func (s *search) conflict(i int, there counts) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		if r.what != apart || r.key != perNode || !slices.Contains(r.kinds, i) {
			return false
		}
		return r.kinds[0] != r.kinds[1] && there[r.kinds[0]]+there[r.kinds[1]]-there[i] > 0
	})
}

// obey returns what of the counts a rule allows in one domain, largest first.
func (s *search) obey(r rule, floor int, all []counts, from [][2]int) ([]counts, [][2]int) {
	if s.spend(2 * len(all) * s.perCounts()); s.spent() { // a rule may make two of one
		return nil, nil
	}
	var kept []counts
	var origin [][2]int
	keep := func(c counts, i int) { kept, origin = append(kept, c), append(origin, from[i]) }
	with := func(c counts, kind, pods int) counts {
		changed := slices.Clone(c)
		changed[kind] = pods
		return changed
	}
	for i, c := range all {
		switch a := r.kinds[0]; {
		case r.what == slice:
			keep(with(c, a, c[a]/r.size*r.size), i)
		case r.what == bind:
			whole := !slices.ContainsFunc(r.kinds, func(k int) bool { return c[k] < s.kinds[k].count })
			for _, k := range r.kinds {
				if !whole {
					c = with(c, k, 0)
				}
			}
			keep(c, i)
		case r.what == spread:
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

// compareRules puts rules into the order in which a domain applies them: what
// may only lower a number first, multiples then, least numbers last.
func compareRules(a, b rule) int {
	rank := func(r rule) int {
		switch r.what {
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
