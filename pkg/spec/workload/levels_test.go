package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

var racks = []string{"example.com/block", "example.com/rack", "kubernetes.io/hostname"}

// On a node that lacks labels, a level is one of those labels that the node has, and of its own.
func TestALevelOnANode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		level  string
		labels map[string]string
		want   string
	}{
		"all labels":        {"block,rack", map[string]string{"block": "1", "rack": "a"}, "block,rack"},
		"without one above": {"block,row,rack", map[string]string{"block": "1", "rack": "a"}, "block,rack"},
		"without its own":   {"block,rack", map[string]string{"block": "1"}, "block,rack"},
		"without any":       {"block,rack", nil, "rack"},
		"of no Topology":    {"rack", nil, "rack"},
		"no level":          {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := workload.LevelOn(c.level, c.labels); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

// A domain of a Topology is one value of each label down to its level: two racks with one name
// in different blocks are two.
func TestADomainHasAllLevelsAboveIt(t *testing.T) {
	t.Parallel()
	rack, ok := workload.LevelIn(racks, "example.com/rack")
	if !ok {
		t.Fatal("the level is not found")
	}
	if _, ok := workload.LevelIn(racks, "example.com/zone"); ok {
		t.Error("a level is found that the Topology lacks")
	}
	for name, c := range map[string]struct {
		level  string
		labels map[string]string
		want   string
		in     bool
	}{
		"a label":             {"example.com/rack", map[string]string{"example.com/rack": "r1"}, "r1", true},
		"no label":            {"example.com/rack", map[string]string{"example.com/block": "b1"}, "", false},
		"a level":             {rack, map[string]string{"example.com/block": "b1", "example.com/rack": "r1"}, "b1/r1", true},
		"another block":       {rack, map[string]string{"example.com/block": "b2", "example.com/rack": "r1"}, "b2/r1", true},
		"a level is missing":  {rack, map[string]string{"example.com/rack": "r1"}, "", false},
		"its own is missing":  {rack, map[string]string{"example.com/block": "b1"}, "", false},
		"values may be empty": {rack, map[string]string{"example.com/block": "", "example.com/rack": ""}, "/", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, in := workload.DomainOf(c.labels, c.level); got != c.want || in != c.in {
				t.Errorf("the domain is %q, %t; want %q, %t", got, in, c.want, c.in)
			}
		})
	}
	if diff := cmp.Diff([]string{"example.com/block", rack}, workload.LevelsDownTo(rack)); diff != "" {
		t.Errorf("the levels down to it (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(racks[:2], workload.LevelKeys(rack)); diff != "" {
		t.Errorf("its labels (-want +got):\n%s", diff)
	}
}

// A pod set in a Topology goes to nodes with all of its labels, and its levels have those above
// them. What the pods ask of each other by affinity stays as it is. The pod set itself is not
// changed.
func TestAPodSetInTheLevelsOfATopology(t *testing.T) {
	t.Parallel()
	exists := func(keys ...string) (all []workload.Requirement) {
		for _, key := range keys {
			all = append(all, workload.Requirement{Key: key, Operator: "Exists"})
		}
		return all
	}
	gpu := workload.Requirement{Key: "gpu", Operator: "In", Values: []string{"h100"}}
	set := workload.PodSet{
		Name: "workers", Group: "g", Topology: &workload.Topology{Mode: workload.TopologyRequired, Level: racks[1], SliceSize: 2, SliceLevel: racks[2]},
		Template: workload.Template{
			Affinity: []workload.NodeTerm{{Labels: []workload.Requirement{gpu}}, {Labels: exists("spare")}},
			Together: []workload.Together{{TopologyKey: racks[1], PodSets: []string{"head"}}, {TopologyKey: "zone"}},
			Apart:    []workload.Apart{{TopologyKey: racks[1], PodSets: []string{"workers"}}},
		},
	}
	before := set
	before.Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: racks[1], SliceSize: 2, SliceLevel: racks[2]}
	rack, _ := workload.LevelIn(racks, racks[1])
	host, _ := workload.LevelIn(racks, racks[2])
	want := set
	want.Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: rack, Within: rack, SliceSize: 2, SliceLevel: host}
	want.Template.Affinity = []workload.NodeTerm{
		{Labels: append([]workload.Requirement{gpu}, exists(racks...)...)}, {Labels: exists(append([]string{"spare"}, racks...)...)},
	}
	want.Template.Together = []workload.Together{{TopologyKey: rack, PodSets: []string{"head"}}, {TopologyKey: "zone"}}
	if diff := cmp.Diff(want, set.InLevels(racks)); diff != "" {
		t.Errorf("in the Topology it is (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, set); diff != "" {
		t.Errorf("the set itself has changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(set, set.InLevels(nil)); diff != "" {
		t.Errorf("without a Topology it is changed (-before +after):\n%s", diff)
	}
	plain := workload.PodSet{Name: "submitter"}.InLevels(racks)
	if diff := cmp.Diff([]workload.NodeTerm{{Labels: exists(racks...)}}, plain.Template.Affinity); diff != "" || plain.Topology != nil {
		t.Errorf("a set without a topology is %+v (-want +got):\n%s", plain, diff)
	}
}
