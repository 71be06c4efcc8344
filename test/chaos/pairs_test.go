package chaos

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/test/suite"
)

// TestPairs: the same seed draws the same pairs, none strikes a part twice, and none is
// drawn twice, in either order.
func TestPairs(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) []string {
		return namesOf(t, suite.Pairs(suite.Trials(apiAway), 50, rand.New(rand.NewPCG(seed, 1))))
	}
	for seed := range uint64(20) {
		names(seed + 3)
	}
	first := names(1)
	if len(first) != 50 {
		t.Errorf("%d pairs, want 50", len(first))
	}
	if diff := cmp.Diff(first, names(1)); diff != "" {
		t.Errorf("the same seed (-first +second):\n%s", diff)
	}
	if cmp.Equal(first, names(2)) {
		t.Error("another seed draws the same")
	}
}

// namesOf returns the names of pairs, none of which strikes a part twice or comes twice.
func namesOf(t *testing.T, pairs []suite.Trial) (names []string) {
	t.Helper()
	drawn := map[string]bool{}
	for _, pair := range pairs {
		names = append(names, pair.String())
		first := pair
		first.And = nil
		both := []string{first.String(), pair.And.String()}
		slices.Sort(both)
		if drawn[strings.Join(both, ", and ")] {
			t.Errorf("the pair %q is drawn twice", both)
		}
		drawn[strings.Join(both, ", and ")] = true
		parts := map[string]bool{}
		for each := &pair; each != nil; each = each.And {
			for _, part := range each.Parts {
				if parts[part] {
					t.Errorf("%s strikes %s twice", pair, part)
				}
				parts[part] = true
			}
		}
	}
	return names
}

// TestMixedPairs: one of each pair is a fault of machines or of the configuration, and over many
// seeds each of them is drawn, with another of them and without. A quota is lowered before
// anything else is broken, because queue-manager has to answer.
func TestMixedPairs(t *testing.T) {
	t.Parallel()
	others := map[string]bool{}
	for _, trial := range mixable() {
		others[trial.String()] = true
	}
	drawn, both := map[string]bool{}, 0
	for seed := range uint64(50) {
		draw := func() []suite.Trial {
			return suite.MixedPairs(suite.Trials(apiAway), mixable(), 10, rand.New(rand.NewPCG(seed, 0)))
		}
		names := namesOf(t, draw())
		if len(names) != 10 {
			t.Errorf("seed %d draws %d pairs, want 10", seed, len(names))
		}
		if diff := cmp.Diff(names, namesOf(t, draw())); diff != "" {
			t.Errorf("seed %d (-first +second):\n%s", seed, diff)
		}
		for _, pair := range draw() {
			first, second := pair, *pair.And
			first.And = nil
			switch {
			case !others[first.String()] && !others[second.String()]:
				t.Errorf("seed %d draws %s, which strikes processes alone", seed, pair)
			case second.Fault == suite.Lowered:
				t.Errorf("seed %d draws %s, which lowers the quota last", seed, pair)
			case others[first.String()] && others[second.String()]:
				both++
			}
			drawn[first.String()], drawn[second.String()] = true, true
		}
	}
	for name := range others {
		if !drawn[name] {
			t.Errorf("no seed draws %s", name)
		}
	}
	if both == 0 {
		t.Error("no pair has two faults of machines or of the configuration")
	}
}

// TestTheDrawsOfASeed: outcomes that are kept are of the pairs of a seed, so it has to draw the
// same for ever, as long as the faults are the same.
func TestTheDrawsOfASeed(t *testing.T) {
	t.Parallel()
	want := []string{
		"capacity-watcher paused for 5s, and nats-1 paused for 8s",
		"capacity-watcher paused for 5s, and dispatcher killed for 1s",
		"capacity-watcher cut from NATS for 8s, and nats-1 losing all streams (stream rm)",
		"nats-1 killed with its data for 3s, and the leader hearing Postgres half a second late for 15s",
	}
	if diff := cmp.Diff(want, namesOf(t, suite.Pairs(suite.Trials(apiAway), 4, rand.New(rand.NewPCG(2121, 1))))); diff != "" {
		t.Errorf("seed 2121 (-want +got):\n%s", diff)
	}
}
