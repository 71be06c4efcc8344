package sim

import (
	"strings"
	"testing"
)

// TestSeedsOfAnAutoscaler runs seeds in which gangs ask for nodes, and holds them to what is
// drawn for them.
func TestSeedsOfAnAutoscaler(t *testing.T) {
	t.Parallel()
	runScaled(t, firstScaled, firstScaled+16, 2, NodesLate, NodesPartial, NodesFailed, NodesExpired, NodesRevoked, NodesLost, NodesGone)
}

// TestAShareOfARunHasAnAutoscaler: the seeds that a run adds are different, all have an autoscaler,
// and half of them one that sees pending pods only.
func TestAShareOfARunHasAnAutoscaler(t *testing.T) {
	t.Parallel()
	const seeds = 1000
	known, shown := map[uint64]bool{}, 0
	for _, seed := range ScaledSeeds(seeds) {
		w := &World{Options: Options{Seed: seed}}
		if !w.scaled() || known[seed] {
			t.Errorf("seed %d has an autoscaler: %t; it comes twice: %t", seed, w.scaled(), known[seed])
		}
		if known[seed] = true; w.shown() {
			shown++
		}
	}
	if len(known) != seeds || shown != seeds/2 {
		t.Errorf("there are %d seeds, %d of them with placeholder pods; want %d and %d", len(known), shown, seeds, seeds/2)
	}
}

// TestSeedsOfPlaceholders runs seeds in which gangs show themselves as pods to an autoscaler that
// sees nothing else.
func TestSeedsOfPlaceholders(t *testing.T) {
	t.Parallel()
	runScaled(t, firstShown, firstShown+32, 4, OutOfStock, NodesPartial)
}

// TestASeedInWhichATurnEnded runs a seed in which a gang's command is withdrawn between the two looks
// of another one at who is shown. Such a seed has broken a promise.
func TestASeedInWhichATurnEnded(t *testing.T) {
	t.Parallel()
	runMade(t, madeTurnBetween, 7552)
}

// TestNodesAreAskedForInAClusterThatLies: another cluster lies that it has no nodes, so that gangs ask
// there. Nothing comes of it, and they ask in their own again.
func TestNodesAreAskedForInAClusterThatLies(t *testing.T) {
	t.Parallel()
	runMade(t, madeElsewhere, 6036, 6058, 7076)
}

// runMade runs seeds, and holds each to something that comes about there.
func runMade(t *testing.T, name string, seeds ...uint64) {
	t.Helper()
	for _, seed := range seeds {
		r := Run(Options{Seed: seed})
		if r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
		if r.Made[name] == 0 {
			t.Errorf("seed %d has no %s: %v", seed, name, r.Made)
		}
	}
}

// runScaled runs each step-th seed from first to end, and holds them to asking for nodes and to
// drawing each of the faults.
func runScaled(t *testing.T, first, end, step uint64, wanted ...Fault) {
	t.Helper()
	made, faults := map[string]int{}, map[Fault]int{}
	for seed := first; seed < end; seed += step {
		r := Run(Options{Seed: seed})
		if r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
		for name, count := range r.Made {
			made[name] += count
		}
		for fault, count := range r.Faults {
			faults[fault] += count
		}
	}
	for _, name := range []string{madeAsked, madeProvisioned, madeScaledDown} {
		if made[name] == 0 {
			t.Errorf("there are no %s in these seeds: %v", name, made)
		}
	}
	for _, fault := range wanted {
		if faults[fault] == 0 {
			t.Errorf("the fault %q is not drawn in these seeds: %v", fault, faults)
		}
	}
}
