package bus_test

import (
	"testing"

	"muster.dev/muster/pkg/bus"
)

// TestRound: a slow round publishes everything in 100 steps, a hasty one in 10, evenly, and
// no step has more than 500.
func TestRound(t *testing.T) {
	t.Parallel()
	const slow, hasty, most = 100, 10, 500 // five minutes, half a minute, and what a step has at most
	for name, c := range map[string]struct {
		all         int
		hasten      bool
		step, steps int
	}{
		"nothing":                       {all: 0, step: 0, steps: 0},
		"one":                           {all: 1, step: 1, steps: 1},
		"one, in haste":                 {all: 1, hasten: true, step: 1, steps: 1},
		"fewer than steps":              {all: slow - 1, step: 1, steps: slow - 1},
		"one for each step":             {all: slow, step: 1, steps: slow},
		"more than steps":               {all: slow + 1, step: 2, steps: 51},
		"a thousand":                    {all: 1000, step: 10, steps: slow},
		"a thousand, in haste":          {all: 1000, hasten: true, step: 100, steps: hasty},
		"the most of a round":           {all: slow * most, step: most, steps: slow},
		"the most of a round, in haste": {all: hasty * most, hasten: true, step: most, steps: hasty},
		"more than a round":             {all: slow*most + 1, step: most, steps: slow + 1},
		"too many for haste":            {all: 2 * hasty * most, hasten: true, step: most, steps: 10 + 50}, // 100 a step after the haste
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r bus.Round
			if c.hasten {
				r.Hasten()
			}
			steps := 0
			for published := 0; published < c.all; steps++ {
				part := r.Step(c.all)
				if part < 1 || part > most || steps == 0 && part != c.step {
					t.Fatalf("step %d of %d has %d, want %d in the first", steps+1, c.all, part, c.step)
				}
				published += part
			}
			if steps != c.steps {
				t.Errorf("%d are published in %d steps, want %d", c.all, steps, c.steps)
			}
		})
	}
}

// TestHasten: a round in haste is followed by slow ones, and is not made longer while it lasts.
func TestHasten(t *testing.T) {
	t.Parallel()
	var r bus.Round
	fast := func() (steps int) {
		for r.Step(1000) == 100 {
			if steps++; steps == 5 {
				r.Hasten()
			}
		}
		return steps
	}
	for i := range 2 {
		r.Hasten()
		if got := fast(); got != 10 {
			t.Errorf("round %d has %d fast steps, want 10", i+1, got)
		}
	}
}
