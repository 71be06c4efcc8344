package suite

import (
	"math/rand/v2"
	"testing"
)

// TestAPairHasTheInstallationOfBoth: what each fault needs is there when it is one of a pair.
func TestAPairHasTheInstallationOfBoth(t *testing.T) {
	t.Parallel()
	needs := func(t Trial) Shape { t.And = nil; return t.shape(Shape{NATS: 1}) }
	for _, pair := range MixedPairs(Trials(0), append(Machines(), Policies()...), 100, rand.New(rand.NewPCG(1, 1))) {
		first, second, got := needs(pair), needs(*pair.And), pair.shape(Shape{NATS: 1})
		want := Shape{
			NATS: 1, Disks: first.Disks || second.Disks, Names: first.Names || second.Names,
			Clocks: first.Clocks || second.Clocks, Quota: first.Quota || second.Quota,
		}
		if got != want {
			t.Errorf("%s has the installation %+v, want %+v", pair, got, want)
		}
	}
}
