package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

const hostname = "kubernetes.io/hostname"

// hostsAt are nodes by block/rack/host, with this many CPUs.
func hostsAt(cpus map[string]int64) []capacity.Node {
	var nodes []capacity.Node
	for _, at := range slices.Sorted(maps.Keys(cpus)) {
		labels := strings.Split(at, "/")
		n := nodeOf(at, cpus[at], 0)
		n.Labels = map[string]string{"block": labels[0], "rack": labels[1], hostname: labels[2]}
		nodes = append(nodes, n)
	}
	return nodes
}

// podsAt counts the pods of a set in each domain, of which a name has that many levels.
func podsAt(placements []workload.Placement, set string, levels int) string {
	pods := map[string]int{}
	for _, p := range placements {
		if p.PodSet == set {
			pods[strings.Join(strings.Split(p.Node, "/")[:levels], "/")] += p.Pods
		}
	}
	var all []string
	for _, at := range slices.Sorted(maps.Keys(pods)) {
		all = append(all, fmt.Sprintf("%s:%d", at, pods[at]))
	}
	return strings.Join(all, " ")
}

// The cases of Kueue 0.15's pkg/cache/scheduler/tas_cache_test.go that are about levels, without
// its alpha features, and what it finds. Where on nodes of the innermost rack pods go, packing
// decides here, so what is compared are racks, and hosts for slices on hosts.
func TestTopologyAsInKueue(t *testing.T) {
	t.Parallel()
	const (
		required, preferred = workload.TopologyRequired, workload.TopologyPreferred
		racks, hosts        = 2, 3
	)
	plain := map[string]int64{"b1/r1/x3": 1, "b1/r2/x5": 1, "b1/r2/x1": 1, "b1/r2/x6": 1, "b2/r1/x2": 1, "b2/r2/x4": 2}
	scattered := map[string]int64{"b1/r1/x3": 4, "b1/r1/x5": 1, "b1/r1/x1": 1, "b2/r1/x6": 2, "b2/r1/x2": 1}
	threeHosts := func(x3, x5, x1 int64) map[string]int64 {
		return map[string]int64{"b1/r1/x3": x3, "b1/r1/x5": x5, "b1/r1/x1": x1}
	}
	for name, c := range map[string]struct {
		cpus        map[string]int64
		pods, depth int
		asked       workload.Topology
		want        string // empty: it does not fit
	}{
		"minimize the number of used racks before optimizing the number of nodes": {
			map[string]int64{"b1/r1/x3": 2, "b1/r2/x5": 2, "b1/r3/x1": 1, "b1/r3/x6": 1, "b1/r3/x2": 1, "b1/r3/x4": 1},
			4, racks, workload.Topology{Mode: required, Level: "block"}, "b1/r3:4",
		},
		"rack required; multiple Pods fit in a rack":                     {plain, 3, racks, workload.Topology{Mode: required, Level: "rack"}, "b1/r2:3"},
		"rack required; multiple Pods fit in some racks":                 {plain, 2, racks, workload.Topology{Mode: required, Level: "rack"}, "b2/r2:2"},
		"rack required; too many pods to fit in any rack":                {plain, 4, racks, workload.Topology{Mode: required, Level: "rack"}, ""},
		"block required; single Pod fits in a block and a single rack":   {plain, 1, racks, workload.Topology{Mode: required, Level: "block"}, "b2/r1:1"},
		"block required; Pods fit in a block spread across two racks":    {plain, 4, racks, workload.Topology{Mode: required, Level: "block"}, "b1/r1:1 b1/r2:3"},
		"block required; too many Pods to fit requested":                 {plain, 5, racks, workload.Topology{Mode: required, Level: "block"}, ""},
		"rack preferred; but only block can accommodate":                 {plain, 4, racks, workload.Topology{Mode: preferred, Level: "rack"}, "b1/r1:1 b1/r2:3"},
		"rack preferred; but only multiple blocks can accommodate":       {plain, 6, racks, workload.Topology{Mode: preferred, Level: "rack"}, "b1/r1:1 b1/r2:3 b2/r2:2"},
		"block preferred; but only multiple blocks can accommodate":      {plain, 6, racks, workload.Topology{Mode: preferred, Level: "block"}, "b1/r1:1 b1/r2:3 b2/r2:2"},
		"block preferred; cannot be accommodated in the entire topology": {plain, 10, racks, workload.Topology{Mode: preferred, Level: "block"}, ""},
		"block preferred; Pods fit in 2 blocks": {
			map[string]int64{"b1/r/x": 2, "b2/r/x": 1, "b3/r/x": 4}, 5, racks, workload.Topology{Mode: preferred, Level: "block"}, "b2/r:1 b3/r:4",
		},
		"block required; host required for slices": {
			threeHosts(3, 3, 3), 6, hosts, workload.Topology{Mode: required, Level: "block", SliceLevel: hostname, SliceSize: 2}, "b1/r1/x1:2 b1/r1/x3:2 b1/r1/x5:2",
		},
		"slices: more free slice capacity first and then tight fit": {
			map[string]int64{"b1/r1/x3": 6, "b1/r1/x5": 5, "b1/r1/x1": 4, "b1/r1/x6": 2}, 12, hosts,
			workload.Topology{Mode: required, Level: "block", SliceLevel: hostname, SliceSize: 2}, "b1/r1/x1:4 b1/r1/x3:6 b1/r1/x6:2",
		},
		"slices: domains with tight fit": {
			threeHosts(3, 2, 2), 4, hosts, workload.Topology{Mode: required, Level: "block", SliceLevel: hostname, SliceSize: 2}, "b1/r1/x1:2 b1/r1/x5:2",
		},
		"slices: optimize last domain": {
			threeHosts(4, 3, 2), 6, hosts, workload.Topology{Mode: required, Level: "block", SliceLevel: hostname, SliceSize: 2}, "b1/r1/x1:2 b1/r1/x3:4",
		},
		"block required; rack required for slices": {
			map[string]int64{"b1/r1/x3": 1, "b1/r1/x5": 1, "b1/r2/x1": 1, "b1/r2/x6": 1, "b1/r2/x2": 1, "b2/r1/x4": 1, "b2/r1/x7": 1},
			4, racks, workload.Topology{Mode: required, Level: "block", SliceLevel: "rack", SliceSize: 2}, "b1/r1:2 b1/r2:2",
		},
		"block preferred; rack required for slices": {plain, 4, racks, workload.Topology{Mode: preferred, Level: "block", SliceLevel: "rack", SliceSize: 2}, "b1/r2:2 b2/r2:2"},
		"block preferred; host required for slices; 2 blocks with unbalanced subdomains": {
			map[string]int64{"b1/r1/x3": 3, "b1/r1/x5": 3, "b1/r1/x1": 3, "b2/r1/x6": 6}, 12, hosts,
			workload.Topology{Mode: preferred, Level: "block", SliceLevel: hostname, SliceSize: 3}, "b1/r1/x1:3 b1/r1/x3:3 b2/r1/x6:6",
		},
		"pods fit in a block, but slices do not fit in racks": {
			map[string]int64{"b1/r1/x3": 2, "b1/r2/x5": 2, "b1/r3/x1": 2}, 6, racks, workload.Topology{Mode: required, Level: "block", SliceLevel: "rack", SliceSize: 3}, "",
		},
		"only 1 out of 2 slices fits": {
			map[string]int64{"b1/r1/x3": 3, "b1/r2/x5": 1, "b1/r3/x1": 1, "b1/r4/x6": 1}, 6, racks, workload.Topology{Mode: required, Level: "block", SliceLevel: "rack", SliceSize: 3}, "",
		},
		"pods fit in both blocks, but slices in only one": {
			map[string]int64{"b1/r1/x3": 2, "b1/r2/x5": 2, "b1/r3/x1": 2, "b2/r4/x6": 3, "b2/r5/x2": 3}, 6, racks,
			workload.Topology{Mode: required, Level: "block", SliceLevel: "rack", SliceSize: 3}, "b2/r4:3 b2/r5:3",
		},
		"no topology; host required for slices; multiple blocks": {scattered, 6, hosts, workload.Topology{SliceLevel: hostname, SliceSize: 2}, "b1/r1/x3:4 b2/r1/x6:2"},
		"no topology; rack required for slices; multiple blocks": {plain, 4, racks, workload.Topology{SliceLevel: "rack", SliceSize: 2}, "b1/r2:2 b2/r2:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gang := gangOf(c.pods, 1, 0)
			gang.PodSets[0].Topology = &c.asked
			gang.PodSets[0] = gang.PodSets[0].InLevels([]string{"block", "rack", hostname})
			v := fleetOf(hostsAt(c.cpus)...).Solve(gang, budget)
			if got := podsAt(v.Placements, "workers", c.depth); got != c.want || (v.Outcome == placement.DoesNotFit) != (c.want == "") {
				t.Errorf("%s: %q, want %q", v.Outcome, got, c.want)
			}
		})
	}
}
