package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"muster.dev/muster/test/suite"
)

// sample draws a fault of each kind, in an order by chance, of those that are quick.
func sample(all []suite.Trial, random *rand.Rand) (drawn []suite.Trial) {
	kinds := map[string][]suite.Trial{}
	for _, trial := range all {
		kinds[trial.Kind()] = append(kinds[trial.Kind()], trial)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		drawn = append(drawn, kinds[kind][random.IntN(len(kinds[kind]))])
	}
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// quick leaves out what the short run has no time for: faults that last long, and the
// end of all parts at once. With few gangs nothing may be published that shows the
// loss of files. Half-closed connections to the API server last until client-go finds them
// dead, up to 10 s (package apiserver), and then each service has to connect and list again.
func quick(all []suite.Trial) []suite.Trial {
	return slices.DeleteFunc(all, func(trial suite.Trial) bool {
		return trial.Fault == suite.StreamsBare || trial.Fault == suite.HalfClosedAPI || trial.For > shortLasts || len(trial.Parts) > len(suite.Services())
	})
}

// mixable are the faults of mixed pairs. Those of clocks are made in services of another build,
// and some are pairs already.
func mixable() []suite.Trial { return slices.Concat(suite.Machines(), suite.Policies()) }

// seedVariable has the seed where no flag gives one. test/run.sh sets it and prints it, and
// its second run of a failed test draws the same.
const seedVariable = "MUSTER_CHAOS_SEED"

// seeded returns the seed of the run.
func seeded(t *testing.T) uint64 {
	t.Helper()
	var err error
	if *seed, err = seedOf(*seed, os.Getenv(seedVariable)); err != nil {
		t.Fatal(err)
	}
	return *seed
}

// seedOf returns the seed of the flag, else that of the variable, else a new one.
func seedOf(flag uint64, variable string) (uint64, error) {
	switch {
	case flag != 0:
		return flag, nil
	case variable == "":
		return rand.Uint64()>>32 + 1, nil
	}
	given, err := strconv.ParseUint(variable, 10, 64)
	if err != nil || given == 0 {
		return 0, fmt.Errorf("%s is %q: want a number above 0", seedVariable, variable)
	}
	return given, nil
}

// drawn is what the flags say. The same seed draws the same.
func drawn(t *testing.T) suite.Plan {
	t.Helper()
	seed := seeded(t)
	fmt.Printf("seed %d: `go test ./test/chaos -run TestChaos -args -seed %d` with the same other flags draws the same\n", seed, seed)
	random := rand.New(rand.NewPCG(seed, 1))
	plan := suite.Plan{Runs: *runs, Gangs: *gangs, Seed: seed, NATS: *nats}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		t.Fatalf("only %q: %v", *only, err)
	}
	long, count, away := *runs > 0, *pairs, apiAway
	if !long {
		plan.Runs, plan.Shared, away = 1, true, shortAway
		if count == 0 {
			count = shortPairs
		}
	}
	if plan.Gangs == 0 {
		plan.Gangs = shortGangs
		if long {
			plan.Gangs = longGangs
		}
	}
	all := suite.Trials(away)
	if !long && *only == "" {
		all = quick(all)
	}
	drawnPairs := suite.Pairs(all, count, random)
	if !long && *only == "" {
		all = sample(all, random)
	}
	if long || *only != "" { // after the draw, so that a seed draws what it did
		all = slices.Concat(all, suite.Machines(), suite.Clocks(), suite.Policies())
		if *nats > 1 {
			all = slices.Concat(all, suite.Several())
		}
	}
	// With numbers of their own, so that a seed draws the other pairs with them or without.
	mixedPairs := suite.MixedPairs(suite.Trials(away), mixable(), *mixed, rand.New(rand.NewPCG(seed, 0)))
	for _, trial := range slices.Concat(all, drawnPairs, mixedPairs) {
		if wanted.MatchString(trial.String()) {
			plan.Trials = append(plan.Trials, trial)
		}
	}
	if plan.Trials, err = ofLane(*lane, plan.Trials); err != nil {
		t.Fatal(err)
	}
	return plan
}

// ofLane returns the faults of a lane: one in each round of the lanes.
func ofLane(lane string, all []suite.Trial) (its []suite.Trial, err error) {
	var which, lanes int
	if _, err := fmt.Sscanf(lane, "%d/%d", &which, &lanes); err != nil || which < 1 || which > lanes {
		return nil, fmt.Errorf("lane %q: want which of how many, such as 2/3", lane)
	}
	for i := which - 1; i < len(all); i += lanes {
		its = append(its, all[i])
	}
	return its, nil
}
