package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// nodeOf returns a node with the given CPUs and GPUs.
func nodeOf(name string, cpus, gpus int64) capacity.Node {
	return capacity.Node{
		Cluster: "c", Name: name, Ready: true, Labels: map[string]string{"kubernetes.io/hostname": name},
		Allocatable: resource.List{"cpu": cpus * 1000, "pods": 110, "nvidia.com/gpu": gpus},
	}
}

// gangOf returns a workload whose pods ask the given CPUs and GPUs.
func gangOf(pods int, cpus, gpus int64) *workload.Workload {
	return &workload.Workload{ID: "gang", PodSets: []workload.PodSet{{
		Name: "workers", Role: workload.RoleWorker, Count: pods,
		Template: workload.Template{Requests: resource.List{"cpu": cpus * 1000, "pods": 1, "nvidia.com/gpu": gpus}},
	}}}
}

func fleetOf(nodes ...capacity.Node) *placement.Fleet {
	f := placement.NewFleet()
	for _, n := range nodes {
		f.SetNode(n)
	}
	return f
}

const budget = 10_000

func TestTakenStaysWithTheNodeUntilItIsGivenBack(t *testing.T) {
	t.Parallel()
	f := fleetOf(nodeOf("a", 8, 2))
	gang := gangOf(2, 1, 1)
	places := f.Solve(gang, budget).Placements
	f.Allocate(gang, places)
	f.RemoveNode("a")
	f.SetNode(nodeOf("a", 8, 3))
	if free, _ := f.Free("a"); free["nvidia.com/gpu"] != 1 {
		t.Errorf("free on the node that came back: %s, want 1 GPU", free)
	}
	f.SetExtra("a", resource.List{"nvidia.com/gpu": 1})
	if v := f.Solve(gangOf(1, 1, 1), budget); v.Outcome != placement.DoesNotFit {
		t.Errorf("a full node gives %+v", v)
	}
	f.Release(gang, places)
	f.SetExtra("a", nil)
	if v := f.Solve(gangOf(3, 1, 1), budget); v.Outcome != placement.Fits {
		t.Errorf("an empty node gives %+v", v)
	}
}

func TestRollbackUndoesWhatIfsAndTheyNest(t *testing.T) {
	t.Parallel()
	f := fleetOf(nodeOf("a", 8, 2), nodeOf("b", 8, 2))
	state := func() string {
		text := ""
		for _, name := range []string{"a", "b", "new"} {
			free, ok := f.Free(name)
			text += fmt.Sprint(name, " ", ok, " ", free, "\n")
		}
		return text
	}
	gang := gangOf(1, 1, 1)
	outer := f.Begin()
	atOuter := state()
	f.SetNode(nodeOf("new", 1, 1))
	f.RemoveNode("b")
	inner := f.Begin()
	atInner := state()
	f.Allocate(gang, []workload.Placement{{PodSet: "workers", Node: "a", Pods: 1}})
	f.SetNode(nodeOf("b", 4, 4))
	f.Rollback(inner)
	if diff := cmp.Diff(atInner, state()); diff != "" {
		t.Errorf("after the inner rollback (-want +got):\n%s", diff)
	}
	f.Rollback(outer)
	if diff := cmp.Diff(atOuter, state()); diff != "" {
		t.Errorf("after the outer rollback (-want +got):\n%s", diff)
	}
}

func TestUnschedulableSignaturesAreRequeuedWhenTheyMayFit(t *testing.T) {
	t.Parallel()
	f := fleetOf(nodeOf("a", 8, 1))
	f.Requeued()
	gang := gangOf(1, 1, 2)
	f.AddUnschedulable("two", gang, f.Solve(gang, budget))
	if requeued := f.Requeued(); len(requeued) != 0 {
		t.Errorf("requeued without a change: %v", requeued)
	}
	savepoint := f.Begin()
	f.SetNode(nodeOf("b", 8, 2))
	f.Rollback(savepoint)
	if requeued := f.Requeued(); len(requeued) != 0 {
		t.Errorf("requeued by a what-if: %v", requeued)
	}
	f.SetNode(nodeOf("b", 8, 2))
	if diff := cmp.Diff([]string{"two"}, f.Requeued()); diff != "" {
		t.Errorf("requeued by a node that takes it (-want +got):\n%s", diff)
	}
}
