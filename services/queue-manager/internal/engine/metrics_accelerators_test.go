package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestAcceleratorsAreCounted: what a term begins with and what its commits have is counted while
// time passes, by queue, flavor and cluster, and the end of the term ends it.
func TestAcceleratorsAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	a := newAccelerators(registrar{registry})
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	now := began
	a.now = func() time.Time { return now }
	step := func(id workload.ID, phase workload.Phase, gpus int64) state.HistoryRow {
		return state.HistoryRow{Workload: id, At: now, Phase: phase, Attempt: 1, Cluster: "east", Usage: &workload.UsageStep{
			Queue: "q", Held: []workload.HeldResources{{Flavor: "a100", Resources: resource.List{"nvidia.com/gpu": gpus, resource.CPU: 1000}}},
		}}
	}
	a.begin(now, []state.HistoryRow{step("old", workload.Running, 8)})
	now = began.Add(10 * time.Second)
	a.observe(state.Changes{History: []state.HistoryRow{step("new", workload.Admitted, 2), {Workload: "waits"}}})
	now = began.Add(20 * time.Second)
	a.end()
	now = began.Add(time.Hour)
	want := `
# HELP muster_accelerator_seconds_total Seconds of accelerators that workloads held in terms of this process: reserved, running, and wasted (starting, lost or idle).
# TYPE muster_accelerator_seconds_total counter
muster_accelerator_seconds_total{cluster="east",flavor="a100",kind="reserved",queue="q"} 180
muster_accelerator_seconds_total{cluster="east",flavor="a100",kind="running",queue="q"} 160
muster_accelerator_seconds_total{cluster="east",flavor="a100",kind="wasted",queue="q"} 20
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
