package placement_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// instance is a small fleet and a gang, with constraints of all kinds mixed.
type instance struct {
	nodes  []capacity.Node
	others []*workload.Workload // hold places
	places [][]workload.Placement
	gang   *workload.Workload
}

// drawInstance makes the instance of a seed.
func drawInstance(seed uint64) *instance {
	r := rand.New(rand.NewPCG(seed, 1))
	in := &instance{}
	for i := range 2 + r.IntN(4) {
		in.nodes = append(in.nodes, drawNode(r, i))
	}
	for range r.IntN(3) {
		w := &workload.Workload{PodSets: []workload.PodSet{drawSet(r, 0, 1, false)}}
		w.PodSets[0].Count = 1
		in.others = append(in.others, w)
		in.places = append(in.places, []workload.Placement{{PodSet: "set-0", Node: in.nodes[r.IntN(len(in.nodes))].Name, Pods: 1}})
	}
	in.gang = &workload.Workload{}
	sets := 1 + r.IntN(3)
	ruled := r.IntN(3) > 0
	for i := range sets {
		in.gang.PodSets = append(in.gang.PodSets, drawSet(r, i, sets, ruled))
	}
	return in
}

func drawNode(r *rand.Rand, i int) capacity.Node {
	name := fmt.Sprintf("node-%d", i)
	n := capacity.Node{
		Name: name, Ready: r.IntN(15) > 0, Cordoned: r.IntN(15) == 0,
		Labels:      map[string]string{"kubernetes.io/hostname": name},
		Allocatable: resource.List{"cpu": int64(2 + r.IntN(6)), "memory": int64(2 + r.IntN(6)), "pods": int64(2 + r.IntN(6))},
	}
	if r.IntN(2) == 0 {
		n.Allocatable["gpu.dev/gpu"] = int64(r.IntN(5))
	}
	if r.IntN(10) > 0 {
		n.Labels["rack"] = fmt.Sprintf("r%d", r.IntN(3))
		n.Labels["block"] = "b" + n.Labels["rack"][1:]
		if n.Labels["block"] == "b2" {
			n.Labels["block"] = "b1"
		}
	}
	if r.IntN(8) > 0 {
		n.Labels["zone"] = fmt.Sprintf("z%d", r.IntN(2)) // not nested with racks
	}
	if r.IntN(6) == 0 {
		n.Taints = []capacity.Taint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
	}
	if r.IntN(5) == 0 {
		n.Unmanaged = resource.List{"cpu": 1, "pods": 1}
	}
	if r.IntN(8) == 0 {
		n.UsedPorts = []workload.HostPort{{Port: 8000 + int32(r.IntN(2)), IP: []string{"", "10.0.0.1"}[r.IntN(2)]}}
	}
	return n
}

func drawSet(r *rand.Rand, i, sets int, ruled bool) workload.PodSet {
	set := workload.PodSet{Name: fmt.Sprintf("set-%d", i), Count: 1 + r.IntN(max(1, 6-sets-r.IntN(3)))}
	t := &set.Template
	t.Requests = resource.List{"cpu": int64(r.IntN(3)), "memory": int64(r.IntN(3)), "pods": 1}
	if r.IntN(2) == 0 {
		t.Requests["gpu.dev/gpu"] = int64(r.IntN(3))
	}
	if r.IntN(40) == 0 {
		t.Requests["nobody.has/it"] = 1
	}
	if r.IntN(8) == 0 {
		t.NodeSelector = map[string]string{"zone": fmt.Sprintf("z%d", r.IntN(2))}
	}
	if r.IntN(8) == 0 {
		t.Affinity = []workload.NodeTerm{{Labels: []workload.Requirement{{Key: "rack", Operator: "NotIn", Values: []string{"r0"}}}}}
	}
	if r.IntN(3) == 0 {
		t.Tolerations = []workload.Toleration{{Key: "dedicated", Operator: "Exists"}}
	}
	if r.IntN(8) == 0 {
		t.HostPorts = []workload.HostPort{{Port: 8000 + int32(r.IntN(2)), IP: []string{"", "10.0.0.1", "10.0.0.2"}[r.IntN(3)]}}
	}
	if ruled {
		drawRules(r, &set, sets)
	}
	return set
}

func drawRules(r *rand.Rand, set *workload.PodSet, sets int) {
	t := &set.Template
	key := func() string {
		return []string{"kubernetes.io/hostname", "rack", "rack", "block", "zone"}[r.IntN(5)]
	}
	other := func() string { return fmt.Sprintf("set-%d", r.IntN(sets)) }
	if r.IntN(5) == 0 {
		t.Together = []workload.Together{{TopologyKey: key()}}
		if r.IntN(2) == 0 {
			t.Together[0].PodSets = []string{other()}
		}
	}
	if r.IntN(4) == 0 {
		t.Apart = []workload.Apart{{TopologyKey: key(), PodSets: []string{other()}}}
	}
	if r.IntN(4) == 0 {
		t.Spread = []workload.Spread{{TopologyKey: key(), MaxSkew: 1 + r.IntN(2), MinDomains: r.IntN(4)}}
	}
	if r.IntN(6) == 0 {
		t.Spread = append(t.Spread, workload.Spread{TopologyKey: key(), MaxSkew: 1 + r.IntN(2)})
	}
	if r.IntN(3) == 0 {
		topology := &workload.Topology{}
		switch r.IntN(3) {
		case 0:
			topology.Mode, topology.Level = workload.TopologyRequired, key()
		case 1:
			topology.Mode, topology.Level = workload.TopologyPreferred, key()
		}
		if r.IntN(2) == 0 {
			topology.SliceSize, topology.SliceLevel = 2, key()
			if r.IntN(6) > 0 {
				set.Count += set.Count % 2
			}
		}
		set.Topology = topology
	}
}

// fleet builds the instance's fleet.
func (in *instance) fleet() *placement.Fleet {
	f := fleetOf(in.nodes...)
	for i, w := range in.others {
		f.Allocate(w, in.places[i])
	}
	return f
}

// fits tries every node for every pod, and is the oracle.
func (in *instance) fits(nodes []placement.View) bool {
	columns := []resource.Name{"cpu", "memory", "pods", "gpu.dev/gpu", "nobody.has/it"}
	free := make([][5]int64, len(nodes))
	for j := range nodes {
		for c, name := range columns {
			free[j][c] = nodes[j].Free[name]
		}
	}
	on := make([][]int, len(in.gang.PodSets))
	for i := range on {
		on[i] = make([]int, len(nodes))
	}
	var place func(set, placed, from int) bool
	place = func(set, placed, from int) bool {
		if set == len(in.gang.PodSets) {
			return certificate.Valid(nodes, in.gang, in.listed(nodes, on)) == nil
		}
		s := &in.gang.PodSets[set]
		if placed == s.Count {
			return place(set+1, 0, 0)
		}
		for j := from; j < len(nodes); j++ {
			before, fits := free[j], true
			for c, name := range columns {
				asked := s.Template.Requests[name]
				fits = fits && (asked == 0 || asked <= free[j][c])
				free[j][c] -= asked
			}
			if fits && nodes[j].Node.Refuses(&s.Template) == "" {
				on[set][j]++
				if place(set, placed+1, j) {
					return true
				}
				on[set][j]--
			}
			free[j] = before
		}
		return false
	}
	return place(0, 0, 0)
}

func (in *instance) listed(nodes []placement.View, on [][]int) []workload.Placement {
	var places []workload.Placement
	for i, set := range in.gang.PodSets {
		for j, v := range nodes {
			if on[i][j] > 0 {
				places = append(places, workload.Placement{PodSet: set.Name, Node: v.Node.Name, Pods: on[i][j]})
			}
		}
	}
	return places
}

func (in *instance) String() string {
	var text strings.Builder
	for _, v := range in.fleet().Views() {
		fmt.Fprintf(&text, "%s free %s labels %v taints %v ready %v cordoned %v ports %v\n",
			v.Node.Name, v.Free, v.Node.Labels, v.Node.Taints, v.Node.Ready, v.Node.Cordoned, v.Ports)
	}
	for _, set := range in.gang.PodSets {
		fmt.Fprintf(&text, "%d of %s: %+v", set.Count, set.Name, set.Template)
		if set.Topology != nil {
			fmt.Fprintf(&text, " topology %+v", *set.Topology)
		}
		text.WriteByte('\n')
	}
	return text.String()
}
