package placement_test

import (
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A pod-set group that prefers a topology shares one domain where there is one for both, else one
// of the next level up. Else it has as few domains as there can be, and the single pod is in the one
// that takes most of the others. Without a group each pod set has its own preference.
func TestAPodSetGroupPrefersOneDomain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workers int
		gpus    map[string]int // nodes of one GPU, by block/rack
		group   string
		want    string // the racks, by pod set
	}{
		"a rack for both":         {2, map[string]int{"a/1": 2, "a/2": 1, "b/3": 3}, "g", "head on b/3, workers on b/3"},
		"each by itself":          {2, map[string]int{"a/1": 2, "a/2": 1, "b/3": 3}, "", "head on a/2, workers on a/1"},
		"the smallest for both":   {2, map[string]int{"a/1": 8, "b/3": 3}, "g", "head on b/3, workers on b/3"},
		"a block for both":        {2, map[string]int{"a/1": 2, "b/2": 2, "b/3": 1}, "g", "head on b/2, workers on b/2 b/3"},
		"few racks of a block":    {4, map[string]int{"a/1": 3, "a/2": 2, "a/3": 1}, "g", "head on a/1, workers on a/1 a/2"},
		"no domain takes both":    {2, map[string]int{"a/1": 2, "b/2": 1}, "g", "head on a/1, workers on a/1 b/2"},
		"the rest in a small one": {4, map[string]int{"a/1": 3, "b/2": 4, "c/3": 2, "d/4": 3}, "g", "head on b/2, workers on b/2 c/3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := nodesAt(c.gpus, "block", "rack")
			gang := gangOf(c.workers, 1, 1)
			head := gang.PodSets[0]
			head.Name, head.Count = "head", 1
			gang.PodSets = []workload.PodSet{head, gang.PodSets[0]}
			for i := range gang.PodSets {
				gang.PodSets[i].Group = c.group
				gang.PodSets[i].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"}
				gang.PodSets[i] = gang.PodSets[i].InLevels([]string{"block", "rack"})
			}
			v := fleetOf(nodes...).Solve(gang, budget)
			if v.Outcome != placement.Fits {
				t.Fatalf("it does not fit: %+v", v.Reason())
			}
			if got := "head on " + racksOf(v.Placements, "head") + ", workers on " + racksOf(v.Placements, "workers"); got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// A preference of a group keeps no pod from a place that it has by itself.
func TestAPodSetGroupIsDividedWhereItMustBe(t *testing.T) {
	t.Parallel()
	nodes := nodesAt(map[string]int{"a/1": 2}, "block", "rack")
	outside := nodeOf("outside", 8, 0)
	outside.Labels["role"] = "head"
	gang := gangOf(2, 1, 1)
	head := gang.PodSets[0]
	head.Name, head.Count = "head", 1
	head.Template.NodeSelector = map[string]string{"role": "head"}
	head.Template.Requests = resource.List{"cpu": 1000, "pods": 1}
	gang.PodSets = []workload.PodSet{head, gang.PodSets[0]}
	for i := range gang.PodSets {
		gang.PodSets[i].Group = "g"
		gang.PodSets[i].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"}
	}
	v := fleetOf(append(nodes, outside)...).Solve(gang, budget)
	if v.Outcome != placement.Fits {
		t.Fatalf("it does not fit: %+v", v.Reason())
	}
	if got := racksOf(v.Placements, "head") + ", " + racksOf(v.Placements, "workers"); got != "outside, a/1" {
		t.Errorf("head and workers are on %s; want outside, a/1", got)
	}
}

// The pod sets of a group that requires a domain are near each other within it, too.
func TestAPodSetGroupIsTogetherWithinItsDomain(t *testing.T) {
	t.Parallel()
	gang := gangOf(3, 1, 1)
	head := gang.PodSets[0]
	head.Name, head.Count = "head", 1
	gang.PodSets = []workload.PodSet{head, gang.PodSets[0]}
	for i := range gang.PodSets {
		gang.PodSets[i].Group = "g"
		gang.PodSets[i].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "block"}
		gang.PodSets[i].Template.Together = []workload.Together{{TopologyKey: "block", PodSets: []string{gang.PodSets[1-i].Name}}}
		gang.PodSets[i] = gang.PodSets[i].InLevels([]string{"block", "rack"})
	}
	v := fleetOf(nodesAt(map[string]int{"a/1": 1, "a/2": 3, "a/3": 2, "b/4": 3}, "block", "rack")...).Solve(gang, budget)
	if got := "head on " + racksOf(v.Placements, "head") + ", workers on " + racksOf(v.Placements, "workers"); got != "head on a/2, workers on a/1 a/2" {
		t.Errorf("%s: %s; want the head on a/2 with workers, and the last one on a/1", v.Outcome, got)
	}
}
