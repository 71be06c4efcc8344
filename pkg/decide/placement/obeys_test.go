package placement_test

import (
	"math/rand/v2"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/workload"
)

// Obeys agrees with the independent check wherever resources, ports and nodes
// are no matter.
func TestObeysAgreesWithTheIndependentCheck(t *testing.T) {
	t.Parallel()
	obeyed, broken := 0, 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 5))
		in := drawInstance(seed)
		for i := range in.nodes {
			in.nodes[i].Ready, in.nodes[i].Cordoned, in.nodes[i].Taints, in.nodes[i].UsedPorts = true, false, nil, nil
		}
		for i := range in.gang.PodSets {
			template := &in.gang.PodSets[i].Template
			template.Requests, template.HostPorts, template.NodeSelector, template.Affinity = nil, nil, nil, nil
		}
		f := fleetOf(in.nodes...)
		places := f.Solve(in.gang, placement.Budget).Placements
		if len(places) == 0 || r.IntN(2) == 0 {
			places = nil
			for _, set := range in.gang.PodSets {
				left := set.Count
				for _, j := range r.Perm(len(in.nodes)) {
					if n := r.IntN(left + 1); n > 0 {
						places = append(places, workload.Placement{PodSet: set.Name, Node: in.nodes[j].Name, Pods: n})
						left -= n
					}
				}
				if left > 0 {
					places = append(places, workload.Placement{PodSet: set.Name, Node: in.nodes[0].Name, Pods: left})
				}
			}
		}
		want := certificate.Valid(f.Views(), in.gang, places)
		if got := f.Obeys(in.gang, places); got != (want == nil) {
			t.Fatalf("seed %d: obeys %v, the check says %v\n%v\n%s", seed, got, want, places, in)
		}
		if want == nil {
			obeyed++
		} else {
			broken++
		}
	}
	if obeyed < 500 || broken < 500 {
		t.Errorf("%d obeyed and %d broken: not varied enough", obeyed, broken)
	}
}
