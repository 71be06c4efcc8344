package placement_test

import (
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// A fleet of some nodes has what is free on these, and nothing of the others.
func TestAFleetOfSomeNodesHasWhatIsFreeOnThem(t *testing.T) {
	t.Parallel()
	f := fleetOf(nodeOf("a", 8, 4), nodeOf("b", 8, 4), nodeOf("c", 8, 4), nodeOf("over", 8, 0))
	taken := gangOf(3, 1, 1)
	taken.PodSets[0].Template.HostPorts = []workload.HostPort{{Port: 80}}
	taken.PodSets[0].Count = 1
	f.Allocate(taken, []workload.Placement{{PodSet: "workers", Node: "a", Pods: 1}})
	f.Allocate(gangOf(1, 1, 1), []workload.Placement{{PodSet: "workers", Node: "over", Pods: 1}}) // it has none
	f.Close([]string{"c"})
	only := f.Only([]string{"a", "c", "over", "unknown"})
	if only.Len() != 3 {
		t.Errorf("%d nodes, want 3", only.Len())
	}
	for pods, want := range map[int]placement.Outcome{3: placement.Fits, 4: placement.DoesNotFit} {
		if v := only.Solve(gangOf(pods, 1, 1), budget); v.Outcome != want {
			t.Errorf("%d pods: %+v, want %v", pods, v, want)
		}
	}
	if v := only.Solve(taken, budget); v.Outcome != placement.DoesNotFit {
		t.Errorf("a port that is in use: %+v, want no place", v)
	}
	if free, _ := f.Free("a"); free["nvidia.com/gpu"] != 3 {
		t.Errorf("the fleet itself has %s free, want it as before", free)
	}
}
