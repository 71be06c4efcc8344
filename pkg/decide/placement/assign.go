package placement

import (
	"slices"
)

// assign distributes the wanted pods over the domains of a frontier; its i-th count
// vector covers them.
func (s *search) assign(f *paretoFrontier, i int, want countVector, domains []*domain, places *[]place) {
	switch {
	case f.form != nil && f.form.level == leaf:
		if slices.ContainsFunc(want, func(pods int) bool { return pods > 0 }) {
			*places = append(*places, place{domains[0].node, want})
		}
	case f.form != nil:
		var inner []*domain
		for _, part := range domains[0].parts {
			inner = append(inner, part...)
		}
		s.assign(f.left, f.from[i][0], want, inner, places)
	case f.right != nil:
		l, r := f.from[i][0], f.from[i][1]
		left, right := s.share(f, f.left.largest[l], f.right.largest[r], want)
		s.assign(f.left, l, left, domains[:f.left.spans], places)
		s.assign(f.right, r, right, domains[f.left.spans:], places)
	}
}

// share splits the wanted pods between the two sides of a sum, the left one first.
func (s *search) share(f *paretoFrontier, left, right, want countVector) (countVector, countVector) {
	left, right = slices.Clone(left), slices.Clone(right)
	unit := make(countVector, len(want))
	for k := range unit {
		unit[k] = 1
	}
	if level := f.level(); level >= 0 {
		unit = s.units[level]
	}
	for k := range want {
		excess := left[k] + right[k] - want[k]
		for _, side := range []struct{ pods, low countVector }{{right, f.right.low}, {left, f.left.low}} {
			less := min(excess, side.pods[k]-side.low[k]) / unit[k] * unit[k]
			if less > 0 {
				side.pods[k] -= less
				excess -= less
			}
		}
	}
	return left, right
}

// level returns the level of the domains that a sum is over.
func (f *paretoFrontier) level() int {
	for f.form == nil {
		f = f.left
	}
	return f.form.level
}
