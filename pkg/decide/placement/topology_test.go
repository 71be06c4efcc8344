package placement_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// A fleet keeps the domains of the levels of its Topologies, also when workloads name others: each
// of those is one level, and drops one at most.
func TestAStrangeLevelDropsNoOther(t *testing.T) {
	t.Parallel()
	f := benchFleet(100)
	solve := func(level string) {
		gang := benchGang(3)
		gang.PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: level}
		f.Solve(gang, placement.Budget)
	}
	for i := range 1000 {
		for _, level := range []string{"block", "block,rack", "block,rack,kubernetes.io/hostname"} {
			if i > 0 && !placement.KeepsDomains(f, level) {
				t.Fatalf("the domains of %s are dropped for level %d of workloads", level, i)
			}
		}
		solve("block,rack,kubernetes.io/hostname") // and those above it
		solve(fmt.Sprintf("strange-%d", i))
	}
	if kept := placement.KeptLevels(f); kept > 4*workload.MostLevels {
		t.Errorf("the domains of %d levels are kept", kept)
	}
}
