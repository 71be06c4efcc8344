package placement_test

import (
	"fmt"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// exampleFleet has two nodes with 4 GPUs each.
func exampleFleet() *placement.Fleet {
	f := placement.NewFleet()
	for _, name := range []string{"node-1", "node-2"} {
		f.SetNode(capacity.Node{Name: name, Ready: true, Allocatable: resource.List{"nvidia.com/gpu": 4, resource.Pods: 110}})
	}
	return f
}

func exampleGang(pods int, gpus int64) *workload.Workload {
	return &workload.Workload{PodSets: []workload.PodSet{{
		Name: "workers", Role: workload.RoleWorker, Count: pods,
		Template: workload.Template{Requests: resource.List{"nvidia.com/gpu": gpus}},
	}}}
}

// Solve finds a node for each pod, or proves that there are not enough: 8 GPUs are free,
// but no third pod of 3 GPUs fits on a node.
func ExampleFleet_Solve() {
	f := exampleFleet()
	verdict := f.Solve(exampleGang(2, 3), placement.Budget)
	fmt.Println(verdict.Outcome)
	for _, p := range verdict.Placements {
		fmt.Println(" ", p.Pods, "of", p.PodSet, "on", p.Node)
	}
	verdict = f.Solve(exampleGang(3, 3), placement.Budget)
	fmt.Println(verdict.Outcome)
	fmt.Println(" ", verdict.Certificate.Proof, verdict.Certificate.PodSets, "room for", verdict.Certificate.Room)
	// Output:
	// fits
	//   1 of workers on node-1
	//   1 of workers on node-2
	// does not fit
	//   counted [workers] room for 2
}

// A what-if: would a gang fit if another one was gone?
func ExampleFleet_Begin() {
	f := exampleFleet()
	running := exampleGang(2, 4)
	places := f.Solve(running, placement.Budget).Placements
	f.Allocate(running, places)

	before := f.Begin()
	f.Release(running, places)
	fmt.Println("without it:", f.Solve(exampleGang(1, 2), placement.Budget).Outcome)
	f.Rollback(before)
	fmt.Println("with it:", f.Solve(exampleGang(1, 2), placement.Budget).Outcome)
	// Output:
	// without it: fits
	// with it: does not fit
}

// A fleet names what may fit again after nodes have changed.
func ExampleFleet_Requeued() {
	f := exampleFleet()
	running, waiting := exampleGang(2, 4), exampleGang(1, 2)
	places := f.Solve(running, placement.Budget).Placements
	f.Allocate(running, places)
	f.AddUnschedulable("waiting", waiting, f.Solve(waiting, placement.Budget))
	fmt.Println(f.Requeued())

	f.Release(running, places)
	fmt.Println(f.Requeued())
	// Output:
	// []
	// [waiting]
}
