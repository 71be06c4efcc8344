package chaos

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/test/suite"
)

// TestPairs: the same seed draws the same pairs, and none strikes a part twice.
func TestPairs(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) (names []string) {
		for _, pair := range suite.Pairs(suite.Trials(apiAway), 50, rand.New(rand.NewPCG(seed, 1))) {
			names = append(names, pair.String())
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
