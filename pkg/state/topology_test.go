package state

import (
	"fmt"
	"slices"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// newStageInTopology is newStage with quota of a flavor whose Topology has blocks and racks, and
// with three nodes in rack a of block 1, on which the gang is. The change is made to its pod sets.
func newStageInTopology(t *testing.T, change func(sets []workload.PodSet)) *stage {
	t.Helper()
	return newStageOn(t, "racks", inRack("1", "a"), change)
}

// newStageOn is newStageInTopology with another Topology of the flavor, and other nodes.
func newStageOn(t *testing.T, topology string, labels func(*capacity.Node), change func(sets []workload.PodSet)) *stage {
	t.Helper()
	s := newStage(t, workload.Rules{}, 0)
	s.inTopologyNamed(topology)
	e := s.live.Get(gangID)
	e.PodSets = slices.Clone(e.PodSets)
	change(e.PodSets)
	s.admission.Enqueue(admission.Waiting{Workload: &e.Workload, Order: 1})
	for i := range 3 {
		s.node(fmt.Sprintf("n%d", i), labels)
	}
	s.step(0)
	s.is(workload.Admitted, "")
	return s
}

// inTopologyNamed gives the flavor of the queue that Topology; empty for none.
func (s *stage) inTopologyNamed(topology string) {
	s.ApplyConfiguration([]Queue{{Name: "q", Namespaces: []string{"ns"}}}, quota.Config{
		Topologies: []quota.Topology{{Name: "racks", Levels: []quota.TopologyLevel{{NodeLabel: "block"}, {NodeLabel: "rack"}}}},
		Flavors:    []quota.Flavor{{Name: "f", TopologyName: topology}},
		ClusterQueues: []quota.ClusterQueue{{Name: "q", ResourceGroups: []quota.ResourceGroup{{
			CoveredResources: []resource.Name{"cpu"}, Flavors: []quota.FlavorQuotas{{Name: "f", Resources: []quota.ResourceQuota{{Name: "cpu", Nominal: 100}}}},
		}}}},
	}, s.Version()+1)
}

func inRack(block, rack string) func(*capacity.Node) {
	return func(n *capacity.Node) { n.Labels = map[string]string{"block": block, "rack": rack} }
}

// required has pod sets be in one rack, alone or as a group.
func required(sets []workload.PodSet, group string) {
	for i := range sets {
		sets[i].Group, sets[i].Topology = group, &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
		if group != "" {
			sets[i].Template.Together = []workload.Together{{TopologyKey: "rack", PodSets: []string{sets[1-i].Name}}}
		}
	}
}

// A replacement stays in the rack of its Topology. A rack of the same name in another block is
// another one.
func TestAReplacementStaysInTheDomainOfItsTopology(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]workload.Phase{"1": workload.Running, "2": workload.Evicting} {
		t.Run("block "+block, func(t *testing.T) {
			t.Parallel()
			s := newStageInTopology(t, func(sets []workload.PodSet) { required(sets[1:], "") })
			s.created(true)
			s.node("spare", inRack(block, "a"))
			s.removeNode(s.place("workers"))
			s.is(want, "")
		})
	}
}

// A Topology that comes later may have labels that the nodes of a gang lack. The gang stays in its
// rack, and does not lose its places for want of them.
func TestATopologyThatComesLaterPinsNoGang(t *testing.T) {
	t.Parallel()
	onRackAlone := func(n *capacity.Node) { n.Labels = map[string]string{"rack": "a"} }
	for name, sets := range map[string]func([]workload.PodSet){
		"alone":   func(sets []workload.PodSet) { required(sets[1:], "") },
		"a group": func(sets []workload.PodSet) { required(sets, "g") },
	} {
		t.Run(name+" grows", func(t *testing.T) {
			t.Parallel()
			s := newStageOn(t, "", onRackAlone, sets)
			s.created(true)
			s.inTopologyNamed("racks")
			s.node("other", inRack("1", "b"))
			s.sizes(3)
			s.is(workload.Running, workload.ReasonGrowing)
			s.node("near", inRack("1", "a"))
			s.step(0)
			s.has(3)
		})
	}
	for rack, want := range map[string]workload.Phase{"a": workload.Running, "b": workload.Evicting} {
		t.Run("replaced in rack "+rack, func(t *testing.T) {
			t.Parallel()
			s := newStageOn(t, "", onRackAlone, func(sets []workload.PodSet) { required(sets[1:], "") })
			s.created(true)
			s.inTopologyNamed("racks")
			s.node("spare", inRack("1", rack))
			s.removeNode(s.place("workers"))
			s.is(want, "")
		})
	}
}

// So do the pods by which a gang grows, also of a pod-set group.
func TestAGangGrowsInTheDomainOfItsTopology(t *testing.T) {
	t.Parallel()
	for name, sets := range map[string]func([]workload.PodSet){
		"alone":   func(sets []workload.PodSet) { required(sets[1:], "") },
		"a group": func(sets []workload.PodSet) { required(sets, "g") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStageInTopology(t, sets)
			s.created(true)
			s.node("another", inRack("2", "a"))
			s.sizes(3)
			s.is(workload.Running, workload.ReasonGrowing)
			s.node("near", inRack("1", "a"))
			s.step(0)
			s.has(3)
			if !slices.ContainsFunc(s.gang().Placements, func(p workload.Placement) bool { return p.Node == "near" }) {
				t.Errorf("the third worker is not in its rack: %v", s.gang().Placements)
			}
		})
	}
}

// The command has the whole domain of each place of a slice: the dispatcher keeps the pods of a
// replica in one.
func TestPlacesOfSlicesHaveTheDomainOfTheirTopology(t *testing.T) {
	t.Parallel()
	s := newStageInTopology(t, func(sets []workload.PodSet) {
		sets[1].Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"}
	})
	for _, place := range s.commanded().Placements {
		if want := map[string]string{"headgroup": "", "workers": "1/a"}[place.PodSet]; place.Domain != want {
			t.Errorf("the place of %s on %s is in domain %q, want %q", place.PodSet, place.Node, place.Domain, want)
		}
	}
}
