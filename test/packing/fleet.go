package main

import (
	"fmt"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// gang returns a pod as a gang of one, a share as a whole GPU.
func gang(p pod) *workload.Workload {
	requests := resource.List{"cpu": p.cpu, "memory": p.memory << 20, "pods": 1}
	if p.gpus > 0 {
		requests["nvidia.com/gpu"] = int64(p.gpus)
	}
	return &workload.Workload{PodSets: []workload.PodSet{{Name: "pod", Count: 1, Template: workload.Template{Requests: requests}}}}
}

// fleets places pods on whole GPUs with package placement. With expect it knows
// which pods are typical.
func fleets(machines []machine, pods []pod, seeds int, expect bool) (at100, at130 figure, err error) {
	ask := func(p pod) int64 { return int64(p.gpus) }
	for seed := range seeds {
		f, capacityGPUs := newFleet(machines)
		queue := arrivals(pods, capacityGPUs*130/100, seed, ask)
		for _, p := range pods {
			if expect {
				f.Expect(placement.DemandOf(gang(p).PodSets), 1)
			}
		}
		mark := f.Begin() // running pods shall not count as typical here
		asked, placed, seen := int64(0), int64(0), false
		for _, p := range queue {
			w := gang(p)
			switch v := f.Solve(w, placement.Budget); v.Outcome {
			case placement.Fits:
				f.Allocate(w, v.Placements)
				placed += ask(p)
			case placement.Unknown:
				return nil, nil, fmt.Errorf("seed %d: no answer for a single pod", seed)
			}
			if asked += ask(p); !seen && asked >= capacityGPUs {
				seen = true
				at100 = append(at100, 100*float64(placed)/float64(capacityGPUs))
			}
		}
		f.Rollback(mark)
		at130 = append(at130, 100*float64(placed)/float64(capacityGPUs))
	}
	return at100, at130, nil
}

func newFleet(machines []machine) (f *placement.Fleet, gpus int64) {
	f = placement.NewFleet()
	for i, m := range machines {
		f.SetNode(capacity.Node{
			Name: fmt.Sprintf("node-%04d", i), Ready: true,
			Allocatable: resource.List{"cpu": m.cpu, "memory": m.memory << 20, "pods": 1000, "nvidia.com/gpu": int64(m.gpus)},
		})
		gpus += int64(m.gpus)
	}
	return f, gpus
}
