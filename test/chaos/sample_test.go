package chaos

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/test/suite"
)

// The sample of the short run has each kind once, takes no longer for any seed, and is
// the same for the same seed; over many seeds it has every fault that is quick.
func TestSample(t *testing.T) {
	t.Parallel()
	const most = 30 * time.Second
	drawn := map[string]bool{}
	for seed := range uint64(500) {
		names := func() (names []string) {
			kinds, lasts := map[string]bool{}, time.Duration(0)
			for _, trial := range sample(quick(suite.Trials(shortAway)), rand.New(rand.NewPCG(seed, 1))) {
				names = append(names, trial.String())
				drawn[trial.String()], kinds[trial.Kind()] = true, true
				lasts += trial.For
			}
			if len(kinds) != len(names) || len(kinds) < 4 {
				t.Errorf("seed %d draws %q of %d kinds", seed, names, len(kinds))
			}
			if lasts > most {
				t.Errorf("the faults of seed %d last %s, want %s at most", seed, lasts, most)
			}
			return names
		}
		if diff := cmp.Diff(names(), names()); diff != "" {
			t.Errorf("seed %d (-first +second):\n%s", seed, diff)
		}
	}
	for _, trial := range quick(suite.Trials(shortAway)) {
		if !drawn[trial.String()] {
			t.Errorf("no seed draws %s", trial)
		}
	}
}

// The short run leaves out nothing but what takes long: TestSample draws from the same list.
func TestQuick(t *testing.T) {
	t.Parallel()
	everything := len(suite.Services()) + 2 // Postgres and NATS
	var leftOut []string
	stays := map[string]bool{}
	for _, trial := range quick(suite.Trials(shortAway)) {
		stays[trial.String()] = true
	}
	for _, trial := range suite.Trials(shortAway) {
		long := trial.For > shortLasts || trial.Fault == suite.StreamsBare || trial.Fault == suite.HalfClosedAPI || len(trial.Parts) == everything
		if stays[trial.String()] == long {
			t.Errorf("%s takes long: %t, and is in the short run: %t", trial, long, stays[trial.String()])
		}
		if long {
			leftOut = append(leftOut, trial.String())
		}
	}
	if len(leftOut) == 0 {
		t.Error("the short run leaves out nothing")
	}
}

// A test that runs again has the seed of the variable that test/run.sh sets; a flag wins.
func TestSeedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flag     uint64
		variable string
		want     uint64
		refused  bool
	}{
		"flag":                   {flag: 7, want: 7},
		"variable":               {variable: "12", want: 12},
		"both":                   {flag: 7, variable: "12", want: 7},
		"variable with no seed":  {variable: "0", refused: true},
		"variable with no count": {variable: "x", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := seedOf(c.flag, c.variable); got != c.want || (err != nil) != c.refused {
				t.Errorf("the seed is %d, %v; want %d", got, err, c.want)
			}
		})
	}
	first, err := seedOf(0, "")
	second, again := seedOf(0, "")
	if first == 0 || first == second || err != nil || again != nil {
		t.Errorf("without both the seeds are %d and %d, %v, %v", first, second, err, again)
	}
}
