package simulation_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"muster.dev/muster/pkg/whatif/simulation"
	"muster.dev/muster/pkg/whatif/swf"
)

// habits is a log of users with programs of their own: each runs about as long as it did
// before, and asks for far more.
func habits(jobs int) (log swf.Log) {
	random := rand.New(rand.NewPCG(7, 7))
	at := int64(0)
	for i := range jobs {
		at += int64(random.ExpFloat64() * 420)
		user := random.Int64N(8)
		usual := 300 * (1 + user*user%5) * (1 + user%3)
		log.Jobs = append(log.Jobs, swf.Job{
			Line: i + 1, Number: int64(i), Submit: at, Run: usual/2 + random.Int64N(usual), User: user, Executable: user % 3,
			AskProcessors: 1 + random.Int64N(6), AskTime: 4 * usual,
		})
	}
	return log
}

// TestETA: estimates are made only of jobs that wait, and their quantiles cover about what
// they say. The same log gives the same estimates, and the decisions are those without any.
func TestETA(t *testing.T) {
	t.Parallel()
	log := habits(900)
	for _, name := range []string{"first-fit", "easy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy, err := simulation.ParsePolicy(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := simulation.Run(log, 17, policy, simulation.Options{ETA: true})
			if err != nil {
				t.Fatal(err)
			}
			plain, err := simulation.Run(log, 17, policy, simulation.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if plain.ETA != nil || got.MeanWait != plain.MeanWait {
				t.Errorf("with estimates the mean wait is %g, without %g (%+v)", got.MeanWait, plain.MeanWait, plain.ETA)
			}
			if got.Estimated < 200 || got.Estimated == got.Jobs || got.Unknown > 0 {
				t.Fatalf("%d of %d jobs were estimated, %d unknown: the log is of no use", got.Estimated, got.Jobs, got.Unknown)
			}
			for _, c := range got.Reliability {
				if c.Covered < c.Quantile-0.07 || c.Covered > c.Quantile+0.07 {
					t.Errorf("quantile %.1f covers %.3f of %d jobs", c.Quantile, c.Covered, got.Estimated)
				}
			}
		})
	}
}

// TestReliabilityIsACount: what each quantile covers is the share of the jobs that started by it,
// counted from their own times.
func TestReliabilityIsACount(t *testing.T) {
	t.Parallel()
	policy, err := simulation.ParsePolicy("easy")
	if err != nil {
		t.Fatal(err)
	}
	result, all, err := simulation.Estimates(habits(400), 17, policy)
	if err != nil || len(all) < 50 || len(all) != result.Estimated || len(result.Reliability) != 9 {
		t.Fatalf("%v, %d estimates, the result has %d and %d quantiles", err, len(all), result.Estimated, len(result.Reliability))
	}
	for i, c := range result.Reliability {
		started := 0
		for _, e := range all {
			if e.Waited <= e.Quantiles[i] {
				started++
			}
		}
		if want := float64(started) / float64(len(all)); c.Covered != want || math.Abs(c.Quantile-float64(i+1)/10) > 1e-9 {
			t.Errorf("quantile %v covers %v, counted are %v of p%d0", c.Quantile, c.Covered, want, i+1)
		}
	}
}
