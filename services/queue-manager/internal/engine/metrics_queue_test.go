package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestQueuesAreCounted: an admission counts once with its wait, an eviction once with its first
// reason, and queues beyond the bound share a series.
func TestQueuesAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newQueueMetrics(registrar{registry})
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	step := func(phase workload.Phase, reason workload.ReasonKind, since time.Time) state.HistoryRow {
		h := state.HistoryRow{Workload: "w", At: at, Phase: phase, Cluster: "east", Usage: &workload.UsageStep{
			Queue: "q", Since: since, Held: []workload.HeldResources{{}, {Flavor: "spot"}},
		}}
		if reason != "" {
			h.Reason = &workload.Reason{Kind: reason}
		}
		return h
	}
	m.observe(state.Changes{Reserved: []state.Reservation{{Workload: "w"}}, History: []state.HistoryRow{step(workload.Admitted, "", at.Add(-time.Minute))}})
	m.observe(state.Changes{History: []state.HistoryRow{step(workload.Admitted, workload.ReasonStarting, time.Time{})}})
	m.observe(state.Changes{History: []state.HistoryRow{step(workload.Running, "", time.Time{}), step(workload.Evicting, workload.ReasonPreempted, time.Time{})}})
	m.observe(state.Changes{History: []state.HistoryRow{step(workload.Evicting, workload.ReasonNodeLost, time.Time{})}})
	want := `
# HELP muster_cluster_admissions_total Gangs admitted, by cluster.
# TYPE muster_cluster_admissions_total counter
muster_cluster_admissions_total{cluster="east"} 1
# HELP muster_cluster_evictions_total Evictions, by cluster and reason.
# TYPE muster_cluster_evictions_total counter
muster_cluster_evictions_total{cluster="east",reason="Preempted"} 1
# HELP muster_evictions_total Evictions, by queue and reason.
# TYPE muster_evictions_total counter
muster_evictions_total{queue="q",reason="Preempted"} 1
# HELP muster_flavor_admissions_total Gangs admitted, by each flavor that they are charged from.
# TYPE muster_flavor_admissions_total counter
muster_flavor_admissions_total{flavor="spot"} 1
# HELP muster_flavor_evictions_total Evictions, by each flavor that the gang is charged from and by reason.
# TYPE muster_flavor_evictions_total counter
muster_flavor_evictions_total{flavor="spot",reason="Preempted"} 1
# HELP muster_queue_admissions_total Gangs admitted, by queue.
# TYPE muster_queue_admissions_total counter
muster_queue_admissions_total{queue="q"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "muster_cluster_admissions_total", "muster_cluster_evictions_total", "muster_evictions_total",
		"muster_flavor_admissions_total", "muster_flavor_evictions_total", "muster_queue_admissions_total"); err != nil {
		t.Error(err)
	}
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	for _, family := range gathered {
		if !strings.HasSuffix(family.GetName(), "admission_wait_seconds") {
			continue
		}
		waits++
		if h := family.GetMetric()[0].GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() != 60 {
			t.Errorf("%s: %d of %v s, want one of 60 s", family.GetName(), h.GetSampleCount(), h.GetSampleSum())
		}
	}
	if waits != 3 {
		t.Errorf("there are %d histograms of waits, want those of queues, clusters and flavors", waits)
	}
	for i := range 2 * mostLabels {
		h := step(workload.Admitted, "", time.Time{})
		h.Usage.Queue = fmt.Sprintf("queue-%d", i)
		m.observe(state.Changes{Reserved: []state.Reservation{{Workload: "w"}}, History: []state.HistoryRow{h}})
	}
	if got := testutil.CollectAndCount(m.queues.admitted); got != mostLabels+1 {
		t.Errorf("there are series of %d queues, want %d and one for the others", got, mostLabels)
	}
	if got := testutil.ToFloat64(m.queues.admitted.WithLabelValues(Others)); got != mostLabels+1 {
		t.Errorf("the others have %v admissions, want %d", got, mostLabels+1)
	}
}
