package placement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// benchFleet returns nodes of 8 GPUs in racks of 16 and blocks of 16 racks, a
// quarter of them without GPUs, used to a random half by pods of all sizes.
func benchFleet(nodes int) *placement.Fleet {
	r := rand.New(rand.NewPCG(1, 1))
	f := placement.NewFleet()
	for i := range nodes {
		n := capacity.Node{
			Cluster: "c", Name: fmt.Sprintf("node-%05d", i), Ready: true,
			Labels: map[string]string{
				"kubernetes.io/hostname": fmt.Sprintf("node-%05d", i),
				"rack":                   fmt.Sprintf("rack-%04d", i/16), "block": fmt.Sprintf("block-%03d", i/256),
			},
			Allocatable: resource.List{"cpu": 96_000, "memory": 1 << 40, "pods": 110, "nvidia.com/gpu": 8},
		}
		if i%4 == 3 {
			delete(n.Allocatable, "nvidia.com/gpu")
		} else if r.IntN(2) == 0 {
			gpus := int64(r.IntN(9))
			n.Unmanaged = resource.List{"cpu": 1000*gpus*8 + int64(r.IntN(4))*500, "memory": gpus << 36, "pods": gpus, "nvidia.com/gpu": gpus}
		}
		f.SetNode(n)
	}
	f.Expect(placement.DemandOf(benchGang(64).PodSets), 1)
	f.Expect(placement.DemandOf(gangOf(40, 4, 1).PodSets), 1)
	return f
}

// benchGang returns a head and workers of 8 GPUs each.
func benchGang(pods int) *workload.Workload {
	return &workload.Workload{PodSets: []workload.PodSet{
		{Name: "head", Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4000, "memory": 16 << 30, "pods": 1}}},
		{Name: "workers", Count: pods - 1, Template: workload.Template{
			Requests: resource.List{"cpu": 64_000, "memory": 512 << 30, "pods": 1, "nvidia.com/gpu": 8},
		}},
	}}
}

// small returns the gang with workers of a quarter of the size.
func small(w *workload.Workload) *workload.Workload {
	w.PodSets[1].Template.Requests = resource.List{"cpu": 16_000, "memory": 128 << 30, "pods": 1, "nvidia.com/gpu": 2}
	return w
}

func inRacks(w *workload.Workload) *workload.Workload {
	w.PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"}
	return w
}

func BenchmarkSolve(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15_000} {
		f := benchFleet(nodes)
		block := small(benchGang(400))
		block.PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "block", SliceSize: 7, SliceLevel: "rack"}
		mixed := benchGang(65)
		mixed.PodSets = append(mixed.PodSets, small(benchGang(nodes)).PodSets[1], small(benchGang(5 * nodes)).PodSets[1])
		mixed.PodSets[2].Name, mixed.PodSets[3].Name = "small", "tiny"
		mixed.PodSets[3].Template.Requests = resource.List{"cpu": 1000, "memory": 1 << 30, "pods": 1, "nvidia.com/gpu": 1}
		for _, c := range []struct {
			name string
			gang *workload.Workload
			want placement.Outcome
		}{
			{"3", benchGang(3), placement.Fits},
			{"8", benchGang(8), placement.Fits},
			{"64", benchGang(64), placement.Fits},
			{"512", small(benchGang(512)), placement.Fits},
			{"512-preferred-rack", inRacks(small(benchGang(512))), placement.Fits},
			{"400-required-block-slices", block, placement.Fits},
			{"no-by-count", benchGang(12_000), placement.DoesNotFit},
			{"no-mixed", mixed, placement.DoesNotFit},
		} {
			b.Run(fmt.Sprintf("nodes=%d/gang=%s", nodes, c.name), func(b *testing.B) {
				if v := f.Solve(c.gang, placement.Budget); v.Outcome != c.want {
					b.Fatalf("%s, want %s", v.Outcome, c.want)
				}
				for b.Loop() {
					f.Solve(c.gang, placement.Budget)
				}
			})
		}
	}
}

// BenchmarkNodeEvent changes a node of 5,000 while 100,000 signatures are unschedulable, of
// which none can fit.
func BenchmarkNodeEvent(b *testing.B) {
	f := benchFleet(5000)
	for kind := range 100 { // of different requests, each asked for by 1,000 shapes
		gang := benchGang(9000)
		gang.PodSets[1].Template.Requests["cpu"] += int64(kind)
		verdict := f.Solve(gang, placement.Budget)
		for i := range 1000 {
			gang.PodSets[1].Count = 9000 + i
			f.AddUnschedulable(fmt.Sprint(kind, " ", i), gang, verdict)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	b.ResetTimer()
	for b.Loop() {
		name := fmt.Sprintf("node-%05d", r.IntN(5000))
		gpus := int64(r.IntN(9))
		f.SetExtra(name, resource.List{"cpu": gpus * 1000, "nvidia.com/gpu": gpus})
		if requeued := f.Requeued(); len(requeued) > 0 {
			b.Fatalf("%d requeued", len(requeued))
		}
	}
}

// BenchmarkSpentBudget is the search for gangs that end undecided: what a budget is
// worth in time and memory.
func BenchmarkSpentBudget(b *testing.B) {
	for seed := range uint64(300) {
		nodes, gang := adversary(seed)
		f := fleetOf(nodes...)
		if f.Solve(gang, placement.Budget).Outcome != placement.Unknown {
			continue
		}
		b.Run(fmt.Sprintf("nodes=%d/sets=%d/seed=%d", len(nodes), len(gang.PodSets), seed), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Solve(gang, placement.Budget)
			}
		})
	}
}

// BenchmarkFreshSelector solves for gangs each of which asks for nodes by labels that
// no gang before it has named: of no node, of one, or of all but one rack.
func BenchmarkFreshSelector(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		for _, key := range []string{"none", "kubernetes.io/hostname", "rack"} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, key), func(b *testing.B) {
				f, i := benchFleet(nodes), 0
				for b.Loop() {
					gang := benchGang(3)
					for s := range gang.PodSets {
						i++
						value := map[string]string{"none": "x", "kubernetes.io/hostname": fmt.Sprintf("node-%05d", i%nodes), "rack": fmt.Sprintf("rack-%04d", i%(nodes/16))}[key]
						gang.PodSets[s].Template.Affinity = []workload.NodeTerm{{Labels: []workload.Requirement{{Key: key, Operator: "NotIn", Values: []string{value, fmt.Sprint(i)}}}}}
						if key != "rack" {
							gang.PodSets[s].Template.Affinity[0].Labels[0].Operator = "In"
						}
					}
					f.Solve(gang, placement.Budget)
				}
			})
		}
	}
}
