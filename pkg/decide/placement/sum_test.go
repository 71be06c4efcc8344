package placement_test

import (
	"testing"

	"muster.dev/muster/pkg/decide/placement"
)

// A gang for which the sum is not enough does not fit, and after the end of others the sum
// has at least what it has with them gone.
func TestTheSumRefusesOnlyWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	refused := 0
	for seed := range uint64(3000) {
		in := drawInstance(seed)
		f := in.fleet()
		sum := f.Sum(in.gang)
		if !sum.Enough() {
			refused++
			if v := f.Solve(in.gang, placement.Budget); v.Outcome != placement.DoesNotFit {
				t.Fatalf("seed %d: the sum is not enough, and the verdict is %v", seed, v.Outcome)
			}
		}
		for i, w := range in.others {
			sum.Release(w, in.places[i])
			f.Release(w, in.places[i])
		}
		if !sum.Enough() && f.Sum(in.gang).Enough() {
			t.Fatalf("seed %d: the sum with %d gangs released is less than that without them", seed, len(in.others))
		}
	}
	if refused < 100 {
		t.Errorf("%d instances were refused: that tells nothing", refused)
	}
}
