package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSeeds runs some seeds; `make sim` runs many.
func TestSeeds(t *testing.T) {
	t.Parallel()
	const seeds = 6
	for seed := range uint64(seeds) {
		if r := Run(Options{Seed: seed}); r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
	}
}

// TestTheSameSeedIsTheSameRun holds the simulation to what it says of itself.
func TestTheSameSeedIsTheSameRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		a, b := Run(Options{Seed: seed}), Run(Options{Seed: seed})
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: %d events and %x, then %d and %x", seed, a.Events, a.Hash, b.Events, b.Hash)
		}
	}
}

// TestPlantedBugsAreFound shows that the checkers bite. Each bug is looked for from a
// seed on that is known to have found it, and if the world has changed since, in
// those behind it.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	const seeds = 40
	for bug, first := range map[Bug]uint64{
		BugUnfenced: 0, BugFreedBySaying: 2, BugTwice: 5, BugEarlyAck: 38, BugClock: 0, BugLostOutbox: 8, BugPassing: 1,
		BugUnordered: 1, BugForgotten: 142, BugUnsaid: 51, BugTakenFirst: 1011, BugOldMemory: 1043,
	} {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			for seed := first; seed < first+seeds; seed++ {
				o := Options{Seed: seed, Bug: bug}
				if bug == BugUnordered {
					o.Script = lateLeaders()
				}
				if r := Run(o); r.Breach != nil {
					t.Logf("found in seed %d after %d events: %.300s", seed, r.Events, r.Breach)
					return
				}
			}
			t.Errorf("not found in %d seeds; `go run ./test/sim/run -seeds 1000 -bug %q` says where it is now", seeds, bug)
		})
	}
}

// lateLeaders has the leader stand still again and again, each time for longer than
// NATS remembers ids, with messages of it on their way. Seeds rarely draw what
// BugUnordered takes: that one of them is a command, and its subject has a later one
// before it arrives.
func lateLeaders() *Script {
	var s Script
	for at := 13 * time.Second; at < faultsFor; at += 24 * time.Second {
		s.Timed = append(s.Timed, TimedFault{At: at, Fault: LateLeader, Pick: uint64(at), For: remembers + 11*time.Second})
	}
	return &s
}

// TestShrinking finds a short story of a planted bug.
func TestShrinking(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		o := Options{Seed: seed, Bug: BugFreedBySaying}
		r := Run(o)
		if r.Breach == nil || size(r.Script) < 4 {
			continue
		}
		short := Shrink(o, r, time.Minute)
		if short.Breach == nil || short.Breach.Promise != r.Breach.Promise {
			t.Fatalf("the short story breaks %v, the long one %v", short.Breach, r.Breach)
		}
		if size(short.Script) >= size(r.Script) {
			t.Errorf("seed %d: %d faults were not made fewer", seed, size(r.Script))
		}
		again := Run(Options{Seed: seed, Bug: o.Bug, Script: &short.Script})
		if again.Breach == nil || again.Hash != short.Hash {
			t.Errorf("the short story, told again, is another one: %v", again.Breach)
		}
		t.Logf("seed %d: of %d faults %d are left", seed, size(r.Script), size(short.Script))
		return
	}
	t.Fatal("no seed to shrink")
}

// TestKeptStories repeats what broke a promise once.
func TestKeptStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var kept Kept
			if err := json.Unmarshal(content, &kept); err != nil {
				t.Fatal(err)
			}
			if r := Run(Options{Seed: kept.Seed, Script: &kept.Script}); r.Breach != nil {
				t.Errorf("%v\n%s", r.Breach, strings.Join(r.Story, "\n"))
			}
		})
	}
}
