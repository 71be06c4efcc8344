package placement_test

import (
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// A pod-set group that prefers a topology shares one domain where there is one for both, else one
// of the next level up, and else each pod set goes where it can. Without a group each has its own
// preference.
func TestAPodSetGroupPrefersOneDomain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gpus  map[string]int // nodes of one GPU, by block/rack
		group string
		want  string // the racks, by pod set
	}{
		"a rack for both":       {map[string]int{"a/1": 2, "a/2": 1, "b/3": 3}, "g", "head on b/3, workers on b/3"},
		"each by itself":        {map[string]int{"a/1": 2, "a/2": 1, "b/3": 3}, "", "head on a/2, workers on a/1"},
		"a block for both":      {map[string]int{"a/1": 2, "b/2": 2, "b/3": 1}, "g", "head on b/3, workers on b/2"},
		"no domain takes both":  {map[string]int{"a/1": 2, "b/2": 1}, "g", "head on b/2, workers on a/1"},
		"the smallest for both": {map[string]int{"a/1": 8, "b/3": 3}, "g", "head on b/3, workers on b/3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := nodesAt(c.gpus, "block", "rack")
			gang := gangOf(2, 1, 1)
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
