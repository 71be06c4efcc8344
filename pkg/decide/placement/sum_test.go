package placement_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
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

// What ends on a node that is allocated twice frees nothing before it has made up for that.
func TestTheSumCountsNothingOfWhatIsOverdrawn(t *testing.T) {
	t.Parallel()
	f := fleetOf(nodeOf("one", 4, 0), nodeOf("two", 1, 0))
	on := func(pods int) (*workload.Workload, []workload.Placement) {
		w := gangOf(pods, 1, 0)
		return w, []workload.Placement{{PodSet: w.PodSets[0].Name, Node: "one", Pods: pods}}
	}
	for _, pods := range []int{4, 3} { // the first runs, the second is to follow it
		f.Allocate(on(pods))
	}
	for _, c := range []struct{ asked, want int }{
		{asked: 1, want: 0}, {asked: 2, want: 4}, {asked: 3, want: 5}, {asked: 5, want: 7},
	} {
		t.Run(fmt.Sprintf("%d pods", c.asked), func(t *testing.T) {
			sum, released := f.Sum(gangOf(c.asked, 1, 0)), 0
			for !sum.Enough() && released < 7 {
				sum.Release(on(1))
				released++
			}
			if released != c.want {
				t.Errorf("%d are there after the end of %d, want %d", c.asked, released, c.want)
			}
		})
	}
}

// What a gang frees is a bound for what its nodes gain, also when they changed after the last
// search, or there was none.
func TestReliefsAreOfTheNodesAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, searched := range []bool{true, false} {
		t.Run(fmt.Sprintf("searched %t", searched), func(t *testing.T) {
			f := fleetOf(nodeOf("one", 4, 0))
			runs := gangOf(4, 1, 0)
			if searched {
				if v := f.Solve(runs, placement.Budget); v.Outcome != placement.Fits {
					t.Fatalf("the verdict is %v", v.Outcome)
				}
			}
			places := []workload.Placement{{PodSet: runs.PodSets[0].Name, Node: "one", Pods: 4}}
			f.Allocate(runs, places)
			gain := f.Reliefs(&gangOf(4, 1, 0).PodSets[0], 1, func(int) (*workload.Workload, []workload.Placement) { return runs, places })
			if gain[0] != 4 {
				t.Errorf("searched before: %t: the end of the gang brings %d pods, want 4", searched, gain[0])
			}
		})
	}
}
