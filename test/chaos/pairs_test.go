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
	names := func(seed uint64) (names []string) {
		drawn := map[string]bool{}
		for _, pair := range suite.Pairs(suite.Trials(apiAway), 50, rand.New(rand.NewPCG(seed, 1))) {
			names = append(names, pair.String())
			first := pair
			first.And = nil
			both := []string{first.String(), pair.And.String()}
			slices.Sort(both)
			if drawn[strings.Join(both, ", and ")] {
				t.Errorf("seed %d draws the pair %q twice", seed, both)
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
