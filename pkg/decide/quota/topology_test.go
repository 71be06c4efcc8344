package quota_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// inRacks is a queue with two flavors: h100 has the Topology "racks", and a100 has none.
func inRacks(queue string) string {
	return fmt.Sprintf(`{"topologies": [{"name": "racks", "levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]}, {"name": "rooms", "levels": [{"nodeLabel": "room"}]}],
		"resourceFlavors": [{"name": "h100", "topologyName": "racks"}, {"name": "a100"}, {"name": "host", "topologyName": "rooms"}],
		"clusterQueues": [{"name": "q", "quotaCheckStrategy": "IgnoreUndeclared", "resourceGroups": [%s]}]}`, queue)
}

const (
	gpuGroup = `{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}`
	twoGroup = `{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}, {"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}`
	cpuGroup = `{"coveredResources": ["cpu"], "flavors": [{"name": "host", "resources": [{"name": "cpu", "nominalQuota": 8}]}]}`
)

// As in Kueue, a pod set gets a flavor only when the flavor's Topology has the levels that it
// names, those of slices not above the other one.
func TestAFlavorHasTheLevelsOfItsTopology(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue    string
		topology *workload.Topology
		want     string // the flavors, or the reason
	}{
		"none":                  {gpuGroup, nil, "h100"},
		"a level":               {gpuGroup, &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}, "h100"},
		"slices below":          {gpuGroup, &workload.Topology{Mode: workload.TopologyPreferred, Level: "block", SliceLevel: "rack", SliceSize: 2}, "h100"},
		"slices of the level":   {gpuGroup, &workload.Topology{Mode: workload.TopologyRequired, Level: "rack", SliceLevel: "rack", SliceSize: 2}, "h100"},
		"slices alone":          {gpuGroup, &workload.Topology{SliceLevel: "rack", SliceSize: 2}, "h100"},
		"another level":         {gpuGroup, &workload.Topology{Mode: workload.TopologyRequired, Level: "zone"}, `no flavor of queue "q" matches pod set "workers", which requests nvidia.com/gpu: flavor "h100" (its Topology "racks" has no level "zone")`},
		"another one of slices": {gpuGroup, &workload.Topology{SliceLevel: "zone", SliceSize: 2}, `flavor "h100" (its Topology "racks" has no level "zone")`},
		"slices above":          {gpuGroup, &workload.Topology{Mode: workload.TopologyRequired, Level: "rack", SliceLevel: "block", SliceSize: 2}, `flavor "h100" (in its Topology "racks", level "block" of slices is above level "rack")`},
		"the next flavor":       {twoGroup, &workload.Topology{Mode: workload.TopologyRequired, Level: "zone"}, "a100"},
		"two Topologies":        {gpuGroup + "," + cpuGroup, nil, `flavor "host" (its Topology is not that of the pod set's other flavors)`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sets := gpuSet(2, 1)
			sets[0].Topology = c.topology
			all, _, why := treeOf(t, inRacks(c.queue)).Queue("q").Assignments(sets)
			got := []string{}
			for _, a := range all {
				got = append(got, a.Flavors[0].Flavors["nvidia.com/gpu"])
			}
			if why != nil {
				got = append(got, why.Message)
			}
			if text := strings.Join(got, " "); why == nil && text != c.want || !strings.Contains(text, c.want) {
				t.Errorf("it gets %q, want %q", text, c.want)
			}
		})
	}
}

// The pods of a flavor with a Topology have its domains; those of another flavor keep labels.
func TestPodsHaveTheDomainsOfTheirFlavorsTopology(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, inRacks(twoGroup))
	sets := gpuSet(2, 1)
	sets[0].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
	for flavor, want := range map[string]string{"h100": "block,rack", "a100": "rack"} {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			given := []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": flavor}}}
			effective, in := tree.Effective(sets, given)[0], tree.InTopology(sets, given)[0]
			if effective.Topology.Level != want || in.Topology.Level != want {
				t.Errorf("the level is %q, and %q; want %q", effective.Topology.Level, in.Topology.Level, want)
			}
			if diff := cmp.Diff(effective, in); diff != "" {
				t.Errorf("the flavor has no other terms (-effective +in its Topology):\n%s", diff)
			}
		})
	}
	if sets[0].Topology.Level != "rack" {
		t.Errorf("the set itself has the level %q", sets[0].Topology.Level)
	}
}

// As in Kueue, a queue with a flavor whose Topology does not exist is inactive.
func TestAMissingTopologyMakesAQueueInactive(t *testing.T) {
	t.Parallel()
	config := configOf(t, inRacks(twoGroup))
	if why := config.Inactive()["q"]; why != "" {
		t.Errorf("the queue is inactive: %s", why)
	}
	config.Topologies = config.Topologies[1:]
	if why, want := config.Inactive()["q"], `clusterQueue "q" is inactive: Topology "racks" of ResourceFlavor "h100" does not exist`; why != want {
		t.Errorf("the queue is inactive because %q, want %q", why, want)
	}
}

// The rules of Kueue's definition.
func TestTopologiesAreChecked(t *testing.T) {
	t.Parallel()
	level := func(labels ...string) (levels []quota.TopologyLevel) {
		for _, label := range labels {
			levels = append(levels, quota.TopologyLevel{NodeLabel: label})
		}
		return levels
	}
	for name, c := range map[string]struct {
		levels []quota.TopologyLevel
		want   string // empty for no fault
	}{
		"one":            {level("example.com/rack"), ""},
		"hostname last":  {level("rack", "kubernetes.io/hostname"), ""},
		"none":           {nil, "topologies[0].levels: has 0 levels; want 1 to 16"},
		"too many":       {slices.Repeat(level("a"), 17), "topologies[0].levels: has 17 levels; want 1 to 16"},
		"twice":          {level("a", "b", "a"), `topologies[0].levels[2].nodeLabel: "a" is there twice; want each label once`},
		"hostname first": {level("kubernetes.io/hostname", "rack"), `topologies[0].levels[0].nodeLabel: "kubernetes.io/hostname" is for the last level`},
		"no key":         {level("rack row"), `topologies[0].levels[0].nodeLabel: "rack row": want a key of a label, such as example.com/rack`},
		"two keys":       {level("block,rack"), `topologies[0].levels[0].nodeLabel: "block,rack": want a key of a label`},
		"empty":          {level(""), `topologies[0].levels[0].nodeLabel: "": want a key of a label`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := quota.Config{Topologies: []quota.Topology{{Name: "t", Levels: c.levels}}}
			err := config.Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is refused with %v, want %q", err, c.want)
			}
		})
	}
}
