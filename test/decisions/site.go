package main

import (
	"fmt"
	"math/rand/v2"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

const gpu = "nvidia.com/gpu"

// site is a fleet in use.
type site struct {
	fleet  *placement.Fleet
	nodes  []string
	random *rand.Rand
}

// newSite makes nodes of 8 GPUs in racks of 16 and blocks of 256, every eighth
// one without GPUs, and fills half of the GPUs with gangs.
func newSite(nodes int) *site {
	s := &site{fleet: placement.NewFleet(), random: rand.New(rand.NewPCG(1, 1))}
	for i := range nodes {
		name := fmt.Sprintf("node-%05d", i)
		n := capacity.Node{
			Cluster: "c", Name: name, Ready: true, Labels: map[string]string{
				capacity.HostnameLabel: name, "rack": fmt.Sprintf("rack-%04d", i/16), "block": fmt.Sprintf("block-%03d", i/256),
			},
			Allocatable: resource.List{"cpu": 96_000, "memory": 1 << 40, "pods": 110, gpu: 8},
			Unmanaged:   resource.List{"cpu": 500 + 250*int64(i%3), "memory": 1 << 30, "pods": 5},
		}
		if i%8 == 7 {
			delete(n.Allocatable, gpu)
		}
		s.fleet.SetNode(n)
		s.nodes = append(s.nodes, name)
	}
	for filled := 0; filled < nodes*7/2; {
		w := gang(s.random, 2+s.random.IntN(15))
		verdict := s.fleet.Solve(w, placement.Budget)
		s.fleet.Allocate(w, verdict.Placements)
		filled += (w.PodSets[1].Count) * int(w.PodSets[1].Template.Requests[gpu])
	}
	return s
}

// inUse returns the part of the GPUs that is in use.
func (s *site) inUse() float64 {
	free, all := int64(0), int64(0)
	for _, v := range s.fleet.Views() {
		free, all = free+v.Free[gpu], all+v.Node.Allocatable[gpu]
	}
	return 1 - float64(free)/float64(all)
}

// change has a pod come or go on some node.
func (s *site) change() {
	s.fleet.SetExtra(s.nodes[s.random.IntN(len(s.nodes))], resource.List{"cpu": int64(s.random.IntN(8)) * 1000, "pods": 1})
}

// gang draws a head and workers of 1, 2, 4 or 8 GPUs.
func gang(r *rand.Rand, pods int) *workload.Workload {
	gpus := int64(1) << r.IntN(4)
	return &workload.Workload{PodSets: []workload.PodSet{
		{Name: "head", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4000, "memory": 16 << 30, "pods": 1}}},
		{Name: "workers", Count: pods - 1, Template: workload.Template{
			Requests: resource.List{"cpu": 8000 * gpus, "memory": gpus << 36, "pods": 1, gpu: gpus},
		}},
	}}
}

// near gives the workers a topology.
func near(w *workload.Workload, t workload.Topology) *workload.Workload {
	w.PodSets[1].Topology = &t
	return w
}

// mixed draws a gang of four pod sets that ask for a little more together than
// there is, and each for less.
func mixed(r *rand.Rand, nodes int) *workload.Workload {
	w := gang(r, 65)
	for i, gpus := range []int64{2, 4} {
		w.PodSets = append(w.PodSets, workload.PodSet{Name: fmt.Sprint("more-", i), Count: nodes * 3 / int(gpus), Template: workload.Template{
			Requests: resource.List{"cpu": 8000 * gpus, "memory": gpus << 36, "pods": 1, gpu: gpus},
		}})
	}
	return w
}
