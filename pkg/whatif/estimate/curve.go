package estimate

import (
	"cmp"
	"math"
	"slices"
)

// curve is the distribution of errors of which some are known to be at least so large: the
// estimator of Kaplan and Meier. Where all are known it is the empirical distribution.
type curve struct {
	steps   []step
	count   int     // of errors, known or not
	largest float64 // of all
}

// step is the part of the errors that are at most so large.
type step struct{ below, value float64 }

// newCurve makes the curve of known errors and of those that are at least as large as atLeast.
func newCurve(known, atLeast []float64) *curve {
	type observed struct {
		value   float64
		atLeast bool
	}
	all := make([]observed, 0, len(known)+len(atLeast))
	for _, v := range known {
		all = append(all, observed{v, false})
	}
	for _, v := range atLeast {
		all = append(all, observed{v, true})
	}
	slices.SortFunc(all, func(a, b observed) int {
		if order := cmp.Compare(a.value, b.value); order != 0 || a.atLeast == b.atLeast {
			return order
		} else if a.atLeast {
			return 1
		}
		return -1
	})
	c, above := &curve{count: len(all), largest: math.Inf(-1)}, 1.0
	for i, o := range all {
		c.largest = o.value
		if !o.atLeast {
			above *= 1 - 1/float64(len(all)-i)
			c.steps = append(c.steps, step{1 - above, o.value})
		}
	}
	return c
}

// quantile returns the error that a part of those to come does not exceed. The next one is as
// likely above the largest of n as between two others: the part is taken of n+1, as in conformal
// prediction, which matters for few. Beyond the largest nothing is known; a factor e is assumed.
func (c *curve) quantile(level float64) float64 {
	if len(c.steps) == 0 { // no one has started: what waits by now is all there is
		return max(0, c.largest)
	}
	level *= float64(c.count+1) / float64(c.count)
	if level >= 1 {
		return c.largest + 1
	}
	at, _ := slices.BinarySearchFunc(c.steps, level, func(s step, level float64) int { return cmp.Compare(s.below, level) })
	if at == len(c.steps) {
		return c.largest
	}
	return c.steps[at].value
}
