package placement

import (
	"slices"
)

// sum returns what the nodes of both take together, at most the wanted number of each
// kind.
func (s *search) sum(a, b *paretoFrontier) *paretoFrontier {
	out := &paretoFrontier{left: a, right: b, spans: a.spans + b.spans, low: make(countVector, len(s.most))}
	for i := range out.low {
		out.low[i] = a.low[i] + b.low[i]
	}
	for i, x := range a.largest {
		for j, y := range b.largest {
			if s.spend(s.perCounts()); s.spent() {
				return out
			}
			total := make(countVector, len(x))
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

// times returns what n equal domains or nodes take together.
func (s *search) times(a *paretoFrontier, n int) *paretoFrontier {
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
func (s *search) enough(f *paretoFrontier) bool {
	return !s.floors && len(f.largest) == 1 && slices.Equal(f.largest[0], s.most)
}

// prune drops counts that others cover.
func (s *search) prune(f *paretoFrontier) {
	if len(f.largest) < 2 {
		return
	}
	order := make([]int, len(f.largest))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return slices.Compare(f.largest[j], f.largest[i]) })
	var largest []countVector
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
			by := slices.IndexFunc(largest, func(kept countVector) bool { return kept.covers(c) })
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

// alone returns what a single node of a group takes: every mix of kinds that leaves no
// room for another pod.
func (s *search) alone(g *group) []countVector {
	var mixes []countVector
	current := make(countVector, len(s.kinds))
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
	f := &paretoFrontier{largest: mixes, from: make([][2]int, len(mixes))}
	s.prune(f)
	return f.largest
}

// onGroup returns how many pods of a kind a node of the group takes with these free
// amounts.
func (s *search) onGroup(i int, g *group, free vector) int {
	k := s.kinds[i]
	if k.on(g, 1) == 0 {
		return 0
	}
	return k.fits(free, min(k.most, s.most[i]))
}

// apartOnNode reports whether a rule keeps the kind apart from another one on a node.
func (s *search) apartOnNode(i int) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool { return r.kind == apart && r.key == perNode && slices.Contains(r.kinds, i) })
}

// conflict reports whether a kind may not join what is on a node.
func (s *search) conflict(i int, there countVector) bool {
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		if r.kind != apart || r.key != perNode || !slices.Contains(r.kinds, i) {
			return false
		}
		return r.kinds[0] != r.kinds[1] && there[r.kinds[0]]+there[r.kinds[1]]-there[i] > 0
	})
}
