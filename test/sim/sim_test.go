package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// TestSeeds runs some seeds; `make sim` runs many.
func TestSeeds(t *testing.T) {
	t.Parallel()
	const seeds = 6
	for seed := range uint64(seeds) {
		if r := played(seed); r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
	}
}

// TestSeedsOfClasses runs seeds that have each of the classes, and holds the classes
// to be drawn.
func TestSeedsOfClasses(t *testing.T) {
	t.Parallel()
	const enough = 3 // seeds of each
	had, made := map[class]int{}, map[string]int{}
	for seed := uint64(firstOfClasses); seed < firstOfClasses+40; seed++ {
		w, wanted := &World{Options: Options{Seed: seed}}, false
		for _, c := range classes {
			if w.is(c) && had[c] < enough {
				had[c]++
				wanted = true
			}
		}
		if !wanted {
			continue
		}
		r := Run(Options{Seed: seed})
		if r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
		for name, count := range r.Made {
			made[name] += count
		}
	}
	for _, c := range classes {
		if had[c] < enough {
			t.Errorf("only %d seeds of class %d", had[c], c)
		}
	}
	for _, name := range []string{madeEarly, madeCramped, madeHolds, madeResumed, madeRequeued, madeRanked, madeMoved, madeRepeated, madeRestarts, madeLapsed, madeResumes} {
		if made[name] == 0 {
			t.Errorf("there are no %s in these seeds: %v", name, made)
		}
	}
}

// TestSeedsOfPersistentRefusals runs seeds in which the database refuses workloads also with an
// SQLSTATE that should pass by waiting, and holds them to looking for those.
func TestSeedsOfPersistentRefusals(t *testing.T) {
	t.Parallel()
	const enough = 5
	found, ran := 0, 0
	for seed := uint64(firstPersistent); ran < enough; seed++ {
		if !(&World{Options: Options{Seed: seed}}).is(classRefused) {
			continue
		}
		ran++
		r := Run(Options{Seed: seed})
		if r.Breach != nil {
			t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
		}
		found += r.Made[madePersistent]
	}
	if found == 0 {
		t.Errorf("none of %d seeds looks for what should pass by waiting", ran)
	}
}

// TestSeedsOfPolicy runs seeds with cohorts, preemption, fair sharing and changes of
// the configuration: two where leaders stay, two where they take turns.
func TestSeedsOfPolicy(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1001, 1013, 1017, 1061} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := played(seed)
			if r.Breach != nil {
				t.Errorf("seed %d: %v\n%s", seed, r.Breach, strings.Join(r.Story, "\n"))
			}
			if r.Faults[Reruled]+r.Faults[Resized] == 0 {
				t.Errorf("seed %d changes no configuration and no size: %v", seed, r.Faults)
			}
		})
	}
}

// TestWhatIsDrawnMatters holds seeds of policy to what is drawn for them: it has to
// come about, not only to be drawn.
func TestWhatIsDrawnMatters(t *testing.T) {
	t.Parallel()
	made := map[string]int{}
	for _, seed := range []uint64{1001, 1009, 1013, 1017, 1025, 1029, 1041} {
		for name, count := range played(seed).Made {
			made[name] += count
		}
	}
	for _, name := range []string{
		madeNominations, madeGrown, madeShrunk, madeGivenUp, madeBorrowed, madeDecayed, madeHeld, madeLearned, madeEvicted + string(workload.ReasonPreempted),
	} {
		if made[name] == 0 {
			t.Errorf("there are no %s in these seeds: %v", name, made)
		}
	}
}

// TestTheSameSeedIsTheSameRun holds the simulation to what it says of itself.
func TestTheSameSeedIsTheSameRun(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 1, 1017} {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			a, b := played(seed), Run(Options{Seed: seed})
			if a.Hash != b.Hash || a.Events != b.Events {
				t.Errorf("seed %d: %d events and %x, then %d and %x", seed, a.Events, a.Hash, b.Events, b.Hash)
			}
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

// scriptOf is what the seeds themselves hardly ever draw of the faults that a bug takes;
// nil where they do.
func scriptOf(bug Bug) *Script {
	switch bug {
	case BugUnordered:
		return lateLeaders()
	case BugWatermarkMoves:
		return olderAgain()
	case BugLateUncompared:
		return olderAndLate()
	case BugDeaf:
		return silentBefore()
	default:
		return nil
	}
}

// silentBefore has the capacity-watchers away for five minutes, and the queue-managers for the
// first 70 s of that: the next term begins with a cluster that is silent.
func silentBefore() *Script {
	return &Script{Timed: []TimedFault{
		{At: 2 * time.Second, Fault: ServiceAway, Pick: 1, For: 5 * time.Minute},
		{At: 3 * time.Second, Fault: ServiceAway, Pick: 2, For: 70 * time.Second},
	}}
}

// TestShrinking finds a short story of a planted bug.
func TestShrinking(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		o := Options{Seed: seed, Bug: BugFreedEarly}
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
