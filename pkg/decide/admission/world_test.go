package admission_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
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

// setOf returns a pod set whose pods ask the given CPUs and GPUs.
func setOf(name string, count int, cpus, gpus int64) workload.PodSet {
	return workload.PodSet{Name: name, Role: workload.RoleWorker, Count: count, Template: workload.Template{
		Requests: resource.List{"cpu": cpus * 1000, "pods": 1, "nvidia.com/gpu": gpus},
	}}
}

// stateOf returns a state with nodes and, in this order, waiting gangs; the n-th
// gang has the id "gang-n", from 0.
func stateOf(nodes []capacity.Node, gangs ...[]workload.PodSet) *admission.State {
	s := admission.NewState(nil)
	for _, n := range nodes {
		s.SetNode(n)
	}
	for i, sets := range gangs {
		enqueue(s, i, "queue", sets)
	}
	return s
}

// start is a time at which decisions are made.
var start = time.Unix(1_000_000, 0)

func decide(s *admission.State) admission.Plan { return admission.Decide(s, start) }

// treeOf returns the tree of a valid configuration.
func treeOf(t testing.TB, c quota.Config) *quota.Tree {
	t.Helper()
	tree, err := quota.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func enqueue(s *admission.State, i int, queue string, sets []workload.PodSet) {
	s.Enqueue(admission.Waiting{Order: int64(i), Workload: &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: queue, PodSets: sets,
	}})
}
