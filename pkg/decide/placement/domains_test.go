package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// TestFewestDomainsFirst lets gangs of equal pods prefer racks of different room:
// no set of fewer racks than were taken has room for the gang.
func TestFewestDomainsFirst(t *testing.T) {
	t.Parallel()
	several := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		var nodes []capacity.Node
		racks := make([]int, 2+r.IntN(6)) // room for pods
		for i := range 4 + r.IntN(20) {
			rack := r.IntN(len(racks))
			gpus := r.IntN(9)
			n := nodeOf(fmt.Sprintf("n%d", i), 100, int64(gpus))
			n.Labels["rack"] = fmt.Sprintf("r%d", rack)
			nodes, racks[rack] = append(nodes, n), racks[rack]+gpus/2
		}
		sum := 0
		for _, room := range racks {
			sum += room
		}
		if sum == 0 {
			continue
		}
		gang := gangOf(1+r.IntN(sum), 1, 2)
		gang.PodSets[0].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"}
		v := fleetOf(nodes...).Solve(gang, budget)
		if v.Outcome != placement.Fits {
			t.Fatalf("seed %d: %d pods do not fit into %v: %+v", seed, gang.PodSets[0].Count, racks, v)
		}
		taken := map[string]bool{}
		for _, p := range v.Placements {
			i := slices.IndexFunc(nodes, func(n capacity.Node) bool { return n.Name == p.Node })
			taken[nodes[i].Labels["rack"]] = true
		}
		slices.Sort(racks)
		slices.Reverse(racks)
		fewest := 0
		for room := 0; room < gang.PodSets[0].Count; fewest++ {
			room += racks[fewest]
		}
		if len(taken) != fewest {
			t.Errorf("seed %d: %d pods take %d racks, and %d have room for them: %v", seed, gang.PodSets[0].Count, len(taken), fewest, racks)
		}
		if fewest > 1 {
			several++
		}
	}
	if several < 500 {
		t.Errorf("only %d gangs needed more than one rack", several)
	}
}
