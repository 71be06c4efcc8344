package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// A name that is not requeued still does not fit, whatever happened to the nodes.
func TestWhatIsNotRequeuedStillDoesNotFit(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := drawInstance(seed)
		f := in.fleet()
		unschedulable := map[string]*workload.Workload{}
		add := func(name string, w *workload.Workload) {
			if v := f.Solve(w, placement.Budget); v.Outcome != placement.Fits {
				f.AddUnschedulable(name, w, v)
				unschedulable[name] = w
			}
		}
		for i := range 4 {
			add(fmt.Sprint("gang-", i), drawInstance(seed+uint64(i)).gang)
		}
		for range 12 {
			change(r, f, in)
			if r.IntN(3) == 0 {
				savepoint := f.Begin()
				change(r, f, in)
				f.Rollback(savepoint)
			}
			if r.IntN(3) == 0 {
				for _, name := range f.Requeued() {
					w := unschedulable[name]
					delete(unschedulable, name)
					add(name, w)
				}
				for _, name := range slices.Sorted(maps.Keys(unschedulable)) {
					tried++
					if v := f.Solve(unschedulable[name], placement.Budget); v.Outcome == placement.Fits {
						t.Fatalf("seed %d: %s is not requeued and fits: %v\n%+v", seed, name, v.Placements, unschedulable[name].PodSets)
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d unschedulable gangs were looked at", tried)
	}
}

// What happens in a fork, also to its unschedulable set, makes no difference after it.
func TestAForkHasItsOwnUnschedulableSet(t *testing.T) {
	t.Parallel()
	requeued := 0
	for seed := range uint64(1500) {
		forks := rand.New(rand.NewPCG(seed, 5))
		var fleets [2]*placement.Fleet
		var plain [2]*rand.Rand
		var drawn [2]*instance
		for k := range fleets {
			plain[k], drawn[k] = rand.New(rand.NewPCG(seed, 6)), drawInstance(seed)
			fleets[k] = drawn[k].fleet()
		}
		add := func(f *placement.Fleet, name string) {
			var i uint64
			fmt.Sscan(name, &i)
			w := drawInstance(seed + i).gang
			if v := f.Solve(w, placement.Budget); v.Outcome != placement.Fits {
				f.AddUnschedulable(name, w, v)
			}
		}
		requeue := func(f *placement.Fleet) []string {
			names := f.Requeued()
			for _, name := range names {
				add(f, name)
			}
			return names
		}
		for round := range 12 {
			for k, f := range fleets {
				add(f, fmt.Sprint(round%4))
				change(plain[k], f, drawn[k])
			}
			savepoint := fleets[1].Fork()
			for range 3 {
				fleets[1].SetNode(drawNode(forks, forks.IntN(6)))
				requeue(fleets[1])
			}
			fleets[1].Rollback(savepoint)
			if forks.IntN(3) == 0 {
				want, got := requeue(fleets[0]), requeue(fleets[1])
				requeued += len(want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: others are requeued after a fork (-without +with):\n%s", seed, diff)
				}
			}
		}
	}
	if requeued < 1000 {
		t.Errorf("only %d were requeued", requeued)
	}
}

// change does something to a fleet that an event could do.
func change(r *rand.Rand, f *placement.Fleet, in *instance) {
	i := r.IntN(len(in.nodes))
	switch r.IntN(6) {
	case 0:
		f.SetNode(drawNode(r, i))
	case 1:
		f.SetNode(in.nodes[i])
	case 2:
		f.RemoveNode(in.nodes[i].Name)
	case 3:
		f.SetExtra(in.nodes[i].Name, drawSet(r, 0, 1, false).Template.Requests)
	case 4:
		f.SetExtra(in.nodes[i].Name, nil)
	case 5:
		for j, w := range in.others {
			f.Release(w, in.places[j])
			in.places[j][0].Node = in.nodes[i].Name
			f.Allocate(w, in.places[j])
		}
	}
}

// A rolled back what-if leaves nothing behind.
func TestRollbackRestoresEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := drawInstance(seed)
		f := in.fleet()
		before, verdict := f.Views(), f.Solve(in.gang, placement.Budget)
		outer := f.Begin()
		for range 5 {
			change(r, f, in)
		}
		middle := f.Views()
		inner := f.Begin()
		for range 5 {
			change(r, f, in)
		}
		f.SetNode(drawNode(r, 9))
		f.Rollback(inner)
		if diff := cmp.Diff(middle, f.Views()); diff != "" {
			t.Fatalf("seed %d: after the inner rollback (-want +got):\n%s", seed, diff)
		}
		f.Rollback(outer)
		if diff := cmp.Diff(before, f.Views()); diff != "" {
			t.Fatalf("seed %d: after the outer rollback (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(verdict, f.Solve(in.gang, placement.Budget)); diff != "" {
			t.Fatalf("seed %d: verdicts differ (-before +after):\n%s", seed, diff)
		}
	}
}

// The same nodes give the same verdict, however the fleet came to be.
func TestVerdictsDoNotDependOnHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		in := drawInstance(seed)
		want := in.fleet().Solve(in.gang, placement.Budget)
		other := placement.NewFleet()
		other.SetNode(drawNode(r, 7))
		other.Solve(drawInstance(seed+1).gang, placement.Budget)
		for _, i := range r.Perm(len(in.nodes)) {
			other.SetNode(drawNode(r, i))
			other.Solve(drawInstance(seed+2).gang, placement.Budget)
			other.SetNode(in.nodes[i])
		}
		for i, w := range in.others {
			other.Allocate(w, in.places[i])
		}
		other.RemoveNode("node-7")
		if diff := cmp.Diff(want, other.Solve(in.gang, placement.Budget)); diff != "" {
			t.Fatalf("seed %d: verdicts differ (-straight +roundabout):\n%s\n%s", seed, diff, in)
		}
	}
}
