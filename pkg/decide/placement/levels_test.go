package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Domains of a Topology are as those of one label whose value has all levels: what the solver
// finds in levels of zone and rack, which are not nested, is what the oracle finds where each
// node has a label of both.
func TestDomainsOfATopologyHaveAllLevels(t *testing.T) {
	t.Parallel()
	fit, not := 0, 0
	for seed := range uint64(600) {
		in, r := drawInstance(seed), rand.New(rand.NewPCG(seed, 3))
		renamed := *in
		renamed.nodes, renamed.gang = nil, &workload.Workload{}
		for _, n := range in.nodes {
			zone, inZone := n.Labels["zone"]
			if rack, inRack := n.Labels["rack"]; inZone && inRack {
				n.Labels = maps.Clone(n.Labels)
				n.Labels["both"] = zone + "-" + rack
			}
			renamed.nodes = append(renamed.nodes, n)
		}
		levels := &workload.Workload{}
		for _, set := range in.gang.PodSets {
			asked := workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
			if r.IntN(3) == 0 {
				asked = workload.Topology{SliceLevel: "rack", SliceSize: 2}
				set.Count += set.Count % 2
			}
			set.Topology = &asked
			levels.PodSets = append(levels.PodSets, set.InLevels([]string{"zone", "rack"}))
			both := workload.Topology{Mode: asked.Mode, Level: strings.Replace(asked.Level, "rack", "both", 1), SliceLevel: strings.Replace(asked.SliceLevel, "rack", "both", 1), SliceSize: asked.SliceSize}
			set.Topology = &both
			set.Template.Affinity = workload.Requiring(set.Template.Affinity, workload.Requirement{Key: "both", Operator: "Exists"})
			renamed.gang.PodSets = append(renamed.gang.PodSets, set)
		}
		views := renamed.fleet().Views()
		v, want := in.fleet().Solve(levels, placement.Budget), renamed.fits(views)
		if (v.Outcome == placement.Fits) != want || v.Outcome == placement.Unknown {
			t.Errorf("seed %d: the solver answers %q, the oracle %t\n%s", seed, v.Outcome, want, &renamed)
		}
		if v.Outcome != placement.Fits {
			not++
			continue
		}
		fit++
		if err := certificate.Valid(views, renamed.gang, v.Placements); err != nil {
			t.Errorf("seed %d: the places are not valid: %v\n%s", seed, err, &renamed)
		}
	}
	if fit < 50 || not < 50 {
		t.Errorf("%d gangs fit and %d do not: too few to tell anything", fit, not)
	}
}

// nodesAt are nodes of one GPU each, by the values of labels, such as a/1.
func nodesAt(gpus map[string]int, labels ...string) []capacity.Node {
	var nodes []capacity.Node
	for _, at := range slices.Sorted(maps.Keys(gpus)) {
		for i := range gpus[at] {
			n := nodeOf(fmt.Sprintf("%s:%d", at, i), 100, 1)
			for i, value := range strings.Split(at, "/") {
				n.Labels[labels[i]] = value
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// racksOf are the racks of such nodes on which a pod set is.
func racksOf(placements []workload.Placement, set string) string {
	var racks []string
	for _, p := range placements {
		if rack, _, _ := strings.Cut(p.Node, ":"); p.PodSet == set && !slices.Contains(racks, rack) {
			racks = append(racks, rack)
		}
	}
	return strings.Join(racks, " ")
}

// As Kueue evaluates a preferred topology: one domain of the level, wherever it is, else one of the
// next level up, and so on, and in each as few domains of the levels within as there can be.
func TestAPreferredTopologyGoesUpTheLevels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gpus map[string]int // nodes of one GPU, by room/block/rack
		pods int
		want string // the racks, by room/block/rack
	}{
		"one rack, though its block is the larger one": {
			map[string]int{"a/1/1": 2, "a/1/2": 2, "b/2/1": 4, "b/2/2": 5}, 4, "b/2/1",
		},
		"the smallest rack that takes all": {
			map[string]int{"a/1/1": 8, "a/1/2": 1, "b/2/1": 4, "b/2/2": 8}, 4, "b/2/1",
		},
		"one block, when no rack takes all": {
			map[string]int{"a/1/1": 4, "a/2/1": 2, "a/2/2": 2, "a/2/3": 1, "b/3/1": 4}, 5, "a/2/1 a/2/2 a/2/3",
		},
		"the block with the fewest racks does not come before the smallest": {
			map[string]int{"a/1/1": 4, "a/1/2": 3, "b/2/1": 2, "b/2/2": 2, "b/2/3": 2}, 6, "b/2/1 b/2/2 b/2/3",
		},
		"one room, when no block takes all": {
			map[string]int{"a/1/1": 3, "b/2/1": 2, "b/3/1": 2, "c/4/1": 3}, 4, "b/2/1 b/3/1",
		},
		"the largest rooms first, when none takes all": {
			map[string]int{"a/1/1": 4, "b/2/1": 1, "b/2/2": 1, "c/3/1": 3}, 6, "a/1/1 b/2/1 b/2/2",
		},
		"racks with one name in two blocks are two": {
			map[string]int{"a/1/x": 2, "a/2/x": 2, "b/3/x": 3}, 3, "b/3/x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := nodesAt(c.gpus, "room", "block", "rack")
			gang := gangOf(c.pods, 1, 1)
			gang.PodSets[0].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"}
			gang.PodSets[0] = gang.PodSets[0].InLevels([]string{"room", "block", "rack"})
			v := fleetOf(nodes...).Solve(gang, budget)
			if v.Outcome != placement.Fits {
				t.Fatalf("it does not fit: %+v", v.Reason())
			}
			if got := racksOf(v.Placements, "workers"); got != c.want {
				t.Errorf("the racks are %s, want %s", got, c.want)
			}
		})
	}
}

// A preference costs no place: where domains of a level cannot be made whole, its pods go to
// others, but never to a node that lacks a label of the Topology.
func TestNodesOutsideATopologyTakeNothing(t *testing.T) {
	t.Parallel()
	for pods, want := range map[int]placement.Outcome{4: placement.Fits, 5: placement.DoesNotFit} {
		t.Run(fmt.Sprint(pods, " pods"), func(t *testing.T) {
			t.Parallel()
			var nodes []capacity.Node
			for i, labels := range []map[string]string{{"block": "b", "rack": "1"}, {"block": "b", "rack": "2"}, {"block": "b"}, {"rack": "1"}, {}} {
				n := nodeOf(fmt.Sprint("n", i), 100, 2)
				maps.Copy(n.Labels, labels)
				nodes = append(nodes, n)
			}
			for mode, topology := range map[string]*workload.Topology{"preferred": {Mode: workload.TopologyPreferred, Level: "rack"}, "none": nil} {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					gang := gangOf(pods, 1, 1)
					gang.PodSets[0].Topology = topology
					gang.PodSets[0] = gang.PodSets[0].InLevels([]string{"block", "rack"})
					if v := fleetOf(nodes...).Solve(gang, budget); v.Outcome != want {
						t.Errorf("the answer is %q, want %q", v.Outcome, want)
					}
				})
			}
		})
	}
}
