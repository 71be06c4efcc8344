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

// TestWhatStillWaitsCounts: when all begin to wait longer, none of them has started yet. The
// quantiles know it all the same, of waits alike only, and until they start.
func TestWhatStillWaitsCounts(t *testing.T) {
	t.Parallel()
	var c estimate.Calibration
	exact := func(wait time.Duration) {
		c.Score(wait, c.Quantiles(wait), wait)
	}
	for range 200 {
		exact(time.Hour)
		exact(5 * time.Minute)
	}
	var pending []estimate.Pending
	for range 100 {
		pending = append(pending, estimate.Pending{Estimated: time.Hour, Waited: 5 * time.Hour})
	}
	expect := func(what string, estimated, p50, p90 time.Duration) {
		t.Helper()
		if q := c.Quantiles(estimated); q[estimate.P50] != p50 || q[estimate.P90] != p90 {
			t.Errorf("%s: p50 is %s and p90 is %s, want %s and %s", what, q[estimate.P50], q[estimate.P90], p50, p90)
		}
	}
	expect("none is late", time.Hour, time.Hour, time.Hour)
	c.Wait(pending)
	expect("a third is late", time.Hour, time.Hour, 5*time.Hour)
	expect("short waits", 5*time.Minute, 5*time.Minute, 5*time.Minute)
	c.Wait(nil)
	expect("they were cancelled", time.Hour, time.Hour, time.Hour)

	var fresh estimate.Calibration
	fresh.Wait(pending)
	if q := fresh.Quantiles(time.Hour); q[estimate.P50] != 5*time.Hour {
		t.Errorf("while none has started, p50 is %s; want as long as they wait", q[estimate.P50])
	}
}

// TestFewScoresAreEnough: after a few scores the p90 of the next estimate covers nine of ten
// starts, too. The largest of n scores is exceeded by one of n+1, so it is no p90.
func TestFewScoresAreEnough(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	wait := func() time.Duration { return time.Duration(math.Exp(random.NormFloat64()) * float64(time.Hour)) }
	for scores := 2; scores <= 12; scores++ {
		const draws = 3000
		covered := 0
		for range draws {
			var c estimate.Calibration
			for range scores {
				c.Score(time.Hour, c.Quantiles(time.Hour), wait())
			}
			if wait() <= c.Quantiles(time.Hour)[estimate.P90] {
				covered++
			}
		}
		if got := float64(covered) / draws; got < 0.87 {
			t.Errorf("after %d scores the p90 covers %.3f", scores, got)
		}
	}
}
