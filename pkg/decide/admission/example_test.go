package admission_test

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// exampleNode has some GPUs and room for 110 pods.
func exampleNode(name string, gpus int64) capacity.Node {
	return capacity.Node{
		Cluster: "east", Name: name, Ready: true,
		Allocatable: resource.List{"nvidia.com/gpu": gpus, resource.Pods: 110},
	}
}

// exampleGang has workers with a number of GPUs each.
func exampleGang(id workload.ID, queue string, pods int, gpus int64) *workload.Workload {
	return &workload.Workload{ID: id, Queue: queue, PodSets: []workload.PodSet{{
		Name: "workers", Role: workload.RoleWorker, Count: pods,
		Template: workload.Template{Requests: resource.List{"nvidia.com/gpu": gpus}},
	}}}
}

// A gang starts as a whole or waits with a reason. When the gang before it has ended,
// the next decision starts it.
func ExampleDecide() {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	s := admission.NewState(nil)
	s.SetNode(exampleNode("node-1", 8))
	s.SetNode(exampleNode("node-2", 8))
	s.Enqueue(admission.Waiting{Workload: exampleGang("train", "research", 2, 8), Order: 1})
	s.Enqueue(admission.Waiting{Workload: exampleGang("tune", "research", 3, 4), Order: 2})

	plan := admission.Decide(s, now)
	for _, a := range plan.Admissions {
		fmt.Println("start", a.Workload, "in", a.Cluster)
		for _, p := range a.Placements {
			fmt.Println(" ", p.Pods, "of", p.PodSet, "on", p.Node)
		}
	}
	fmt.Println("tune waits:", s.Reason("tune").Kind)

	s.Leave("train")
	s.Release("train") // its pods are gone
	for _, a := range admission.Decide(s, now.Add(time.Minute)).Admissions {
		fmt.Println("start", a.Workload, "in", a.Cluster)
	}
	// Output:
	// start train in east
	//   1 of workers on node-1
	//   1 of workers on node-2
	// tune waits: Fit
	// start tune in east
}

// A gang of higher priority has one of its queue evicted. It is nominated for the places
// until the victim is gone.
func ExampleDecide_preemption() {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	tree, err := quota.New(quota.Config{
		Flavors: []quota.Flavor{{Name: "default"}},
		ClusterQueues: []quota.ClusterQueue{{
			Name:       "research",
			Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority},
			ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"nvidia.com/gpu"},
				Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: 8}}}},
			}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := admission.NewState(tree)
	s.SetNode(exampleNode("node-1", 8))
	s.Enqueue(admission.Waiting{Workload: exampleGang("batch", "research", 1, 8), Order: 1})
	admission.Decide(s, now)

	urgent := exampleGang("urgent", "research", 1, 8)
	urgent.Priority = 100
	s.Enqueue(admission.Waiting{Workload: urgent, Order: 2})
	plan := admission.Decide(s, now.Add(time.Minute))
	for _, e := range plan.Evictions {
		fmt.Println("evict", e.Workload, "for", e.Reason.Preemption.Preemptor)
	}
	fmt.Println("urgent waits:", s.Reason("urgent").Kind)

	s.Release("batch")
	for _, a := range admission.Decide(s, now.Add(2*time.Minute)).Admissions {
		fmt.Println("start", a.Workload)
	}
	// Output:
	// evict batch for urgent
	// urgent waits: WaitingForEviction
	// start urgent
}

// Explain names the smallest changes each of which would admit a workload now.
func ExampleExplain() {
	now := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	s := admission.NewState(nil)
	s.SetNode(exampleNode("node-1", 8))
	s.Enqueue(admission.Waiting{Workload: exampleGang("tune", "research", 3, 4), Order: 1})
	admission.Decide(s, now)

	explained, _ := admission.Explain(s, "tune", now)
	for _, change := range explained.Changes {
		fmt.Println(change.Message)
	}
	// Output:
	// 1 pod fewer in pod set "workers" (2 instead of 3)
	// 1 more empty node like node-1 (nvidia.com/gpu 8, pods 110) in cluster east
}
