package estimate_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"muster.dev/muster/pkg/whatif/estimate"
)

// TestQuantilesCoverTheirLevel: whatever the errors are like, and when they change, each
// quantile covers about its level of what comes.
func TestQuantilesCoverTheirLevel(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(r *rand.Rand, i int, estimated time.Duration) time.Duration{
		"exact": func(_ *rand.Rand, _ int, e time.Duration) time.Duration { return e },
		"twice as long": func(r *rand.Rand, _ int, e time.Duration) time.Duration {
			return time.Duration(2 * r.Float64() * float64(e))
		},
		"heavy tail": func(r *rand.Rand, _ int, e time.Duration) time.Duration {
			return time.Duration(float64(e) * math.Exp(2*r.NormFloat64()))
		},
		"changes for good": func(r *rand.Rand, i int, e time.Duration) time.Duration {
			return time.Duration(float64(1+i/2500*5) * r.Float64() * float64(e))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const draws = 5000
			random := rand.New(rand.NewPCG(1, 2))
			var c estimate.Calibration
			covered := make([]int, len(estimate.Levels()))
			for i := range draws {
				estimated := time.Duration(1+random.IntN(5*3600)) * time.Second
				q, waited := c.Quantiles(estimated), wait(random, i, estimated).Round(time.Second)
				for k := range q {
					if waited <= q[k] {
						covered[k]++
					}
				}
				c.Score(estimated, q, waited)
			}
			for k, level := range estimate.Levels() {
				got := float64(covered[k]) / draws
				if got < level-0.03 || got > level+0.03 && name != "exact" { // a tie is covered by all
					t.Errorf("the quantile %.1f covers %.3f", level, got)
				}
			}
		})
	}
}

// TestQuantilesWithoutScores: the first estimate is all there is.
func TestQuantilesWithoutScores(t *testing.T) {
	t.Parallel()
	var c estimate.Calibration
	for i, q := range c.Quantiles(time.Hour) {
		if q != time.Hour {
			t.Errorf("quantile %d is %s, want an hour", i, q)
		}
	}
}
