package placement_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// nearby returns a gang that prefers few blocks, few racks in them, and few nodes in those.
func nearby(pods int) *workload.Workload {
	gang := small(benchGang(pods))
	gang.PodSets[1].Topology = &workload.Topology{Mode: workload.TopologyPreferred, Level: "kubernetes.io/hostname"}
	gang.PodSets[1] = gang.PodSets[1].InLevels([]string{"block", "rack", "kubernetes.io/hostname"})
	return gang
}

// BenchmarkPreferredLevels places a gang that prefers few domains of each level of a Topology.
func BenchmarkPreferredLevels(b *testing.B) {
	for _, nodes := range []int{1000, 4000, 16_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			f, gang := benchFleet(nodes), nearby(64)
			b.ReportAllocs()
			for b.Loop() {
				if v := f.Solve(gang, placement.Budget); v.Outcome != placement.Fits {
					b.Fatalf("it %s", v.Outcome)
				}
			}
		})
	}
}

// Four times as many nodes are four times as many domains, and take about four times as much
// memory. It is not parallel: it counts the process's bytes.
func TestPreferredLevelsTakeLinearMemory(t *testing.T) {
	took := func(nodes int) int64 {
		f, gang := benchFleet(nodes), nearby(64)
		solve := func() placement.Verdict { return f.Solve(gang, placement.Budget) }
		solve() // what the fleet keeps of its domains
		v, bytes := measured(solve)
		if v.Outcome != placement.Fits {
			t.Fatalf("on %d nodes it %s", nodes, v.Outcome)
		}
		return bytes
	}
	if few, many := took(2000), took(8000); many > 6*few {
		t.Errorf("2000 nodes take %d bytes, 8000 nodes %d", few, many)
	}
}
