package placement_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Bounds of one call of Solve, whatever the gang: bytes allocated per step of the
// search, and per node by what is not search.
const (
	bytesPerStep = 256
	bytesPerNode = 16 << 10
)

// adversary draws nodes and a gang whose exact search is as expensive as it can
// be made within what the interfaces accept: many pod sets that compete for
// several resources, so that frontiers are wide, and rules of all kinds.
func adversary(seed uint64) ([]capacity.Node, *workload.Workload) {
	r := rand.New(rand.NewPCG(seed, 99))
	columns := []resource.Name{"cpu", "memory", "a.dev/a", "b.dev/b", "c.dev/c"}
	columns = columns[:2+r.IntN(4)]
	many := []int{2, 3, 7, 20, 60, 300}[r.IntN(6)]
	nodes := make([]capacity.Node, many)
	for i := range nodes {
		nodes[i] = adversarialNode(r, i, columns)
	}
	gang := &workload.Workload{}
	sets := 2 + r.IntN(12)
	pods := many * 10 * (35 + r.IntN(50)) / 100 // about what there is room for
	for i := range sets {
		gang.PodSets = append(gang.PodSets, adversarialSet(r, i, 1+r.IntN(2*pods/sets+1), columns))
	}
	return nodes, gang
}

func adversarialNode(r *rand.Rand, i int, columns []resource.Name) capacity.Node {
	name := fmt.Sprintf("node-%d", i)
	n := capacity.Node{
		Name: name, Ready: true, Allocatable: resource.List{"pods": int64(8 + r.IntN(60))},
		Labels: map[string]string{
			"kubernetes.io/hostname": name, "rack": fmt.Sprint(i / 4), "block": fmt.Sprint(i / 16),
			"zone": fmt.Sprint(i % 3), "model": fmt.Sprint(r.IntN(3)), // across racks
		},
	}
	for _, c := range columns {
		n.Allocatable[c] = int64(35 + r.IntN(30))
	}
	return n
}

func adversarialSet(r *rand.Rand, i, pods int, columns []resource.Name) workload.PodSet {
	set := workload.PodSet{Name: fmt.Sprintf("set-%d", i), Count: pods}
	t := &set.Template
	t.Requests = resource.List{"pods": 1}
	for _, c := range columns {
		t.Requests[c] = int64(1 + r.IntN(8))
	}
	key := func() string {
		return []string{"kubernetes.io/hostname", "rack", "block", "zone", "model"}[r.IntN(5)]
	}
	if r.IntN(2) == 0 {
		t.Spread = append(t.Spread, workload.Spread{TopologyKey: key(), MaxSkew: 1 + r.IntN(4), MinDomains: r.IntN(3)})
	}
	if r.IntN(5) == 0 && i > 0 {
		t.Apart = append(t.Apart, workload.Apart{TopologyKey: key(), PodSets: []string{fmt.Sprintf("set-%d", r.IntN(i))}})
	}
	if r.IntN(6) == 0 && i > 0 {
		t.Together = append(t.Together, workload.Together{TopologyKey: key(), PodSets: []string{fmt.Sprintf("set-%d", r.IntN(i))}})
	}
	if r.IntN(6) == 0 {
		t.HostPorts = []workload.HostPort{{Port: 8000 + int32(r.IntN(2))}}
	}
	if r.IntN(6) == 0 {
		set.Topology = &workload.Topology{SliceSize: 1 + r.IntN(4), SliceLevel: key()}
		set.Count += set.Topology.SliceSize - set.Count%set.Topology.SliceSize
	}
	return set
}

// TestNoGangTakesMoreThanItsBudget: neither steps nor memory of one call exceed
// what the budget allows, and the answers are still right. It is not parallel: the
// bytes that it counts are the process's.
func TestNoGangTakesMoreThanItsBudget(t *testing.T) {
	unknown, searched := 0, 0
	for seed := range uint64(300) {
		nodes, gang := adversary(seed)
		f := fleetOf(nodes...)
		views := f.Views()
		v, bytes := measured(func() placement.Verdict { return f.Solve(gang, placement.Budget) })
		if v.Steps > placement.Budget {
			t.Errorf("seed %d: %d steps", seed, v.Steps)
		}
		if most := int64(v.Steps)*bytesPerStep + int64(len(nodes))*bytesPerNode + 4<<20; bytes > most {
			t.Errorf("seed %d: %d steps allocated %d bytes, want at most %d", seed, v.Steps, bytes, most)
		}
		if v.Steps > 0 {
			searched++
		}
		switch v.Outcome {
		case placement.Fits:
			if err := certificate.Valid(views, gang, v.Placements); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		case placement.Unknown:
			unknown++
		}
	}
	t.Logf("%d of 300 were searched for, %d ended undecided", searched, unknown)
	if unknown < 20 || searched < 100 {
		t.Error("the gangs are not expensive enough to tell anything")
	}
}

func measured(solve func() placement.Verdict) (placement.Verdict, int64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v := solve()
	runtime.ReadMemStats(&after)
	return v, int64(after.TotalAlloc - before.TotalAlloc)
}

// spreading is a gang of many sets, each spread over hosts: its floors are tried in
// all combinations.
func spreading(sets int) *workload.Workload {
	gang := &workload.Workload{}
	for i := range sets {
		gang.PodSets = append(gang.PodSets, workload.PodSet{Name: fmt.Sprintf("set-%d", i), Count: 12, Template: workload.Template{
			Requests: resource.List{"cpu": int64(1 + i), "memory": int64(9 - i), "pods": 1},
			Spread:   []workload.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 4}},
		}})
	}
	return gang
}

// TestManySpreadsEndUndecided: the combinations of least numbers are within the
// budget, too.
func TestManySpreadsEndUndecided(t *testing.T) {
	var nodes []capacity.Node
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		nodes = append(nodes, capacity.Node{
			Name: name, Ready: true, Labels: map[string]string{"kubernetes.io/hostname": name},
			Allocatable: resource.List{"cpu": 170, "memory": 178, "pods": 110},
		})
	}
	for _, sets := range []int{7, 8} {
		t.Run(fmt.Sprintf("%d pod sets", sets), func(t *testing.T) {
			f := fleetOf(nodes...)
			v, bytes := measured(func() placement.Verdict { return f.Solve(spreading(sets), placement.Budget) })
			if v.Outcome != placement.Unknown || v.Steps > placement.Budget {
				t.Errorf("%d sets: %s after %d steps", sets, v.Outcome, v.Steps)
			}
			if bytes > placement.Budget*bytesPerStep {
				t.Errorf("%d sets: %d bytes", sets, bytes)
			}
		})
	}
}

// TestSelectorsComeAndGo: with more selectors than are remembered, which match no
// node, one, or half of them, verdicts stay those of a fleet that has met no other.
func TestSelectorsComeAndGo(t *testing.T) {
	t.Parallel()
	const nodes = 400
	fleet := placement.NewFleet()
	for i := range nodes {
		n := capacity.Node{
			Name: fmt.Sprintf("node-%03d", i), Ready: true, Labels: map[string]string{"half": fmt.Sprint(i % 2), "name": fmt.Sprint(i)},
			Allocatable: resource.List{"cpu": int64(4 + i%7), "pods": 10},
		}
		fleet.SetNode(n)
	}
	for i := range 300 { // more than are remembered
		gang := &workload.Workload{PodSets: []workload.PodSet{{Name: "a", Count: 2, Template: workload.Template{
			NodeSelector: map[string]string{"name": fmt.Sprint(i)}, Requests: resource.List{"cpu": 2, "pods": 1},
		}}, {Name: "b", Count: 1 + i%3, Template: workload.Template{
			NodeSelector: map[string]string{"half": fmt.Sprint(i % 5)}, Requests: resource.List{"cpu": 3, "pods": 1},
		}}}}
		v := fleet.Solve(gang, placement.Budget)
		fresh := placement.NewFleet()
		for _, view := range fleet.Views() {
			fresh.SetNode(view.Node)
		}
		want := fresh.Solve(gang, placement.Budget)
		if diff := cmp.Diff(want, v); diff != "" {
			t.Fatalf("gang %d (-fresh fleet +this one):\n%s", i, diff)
		}
	}
}
