package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
)

// TestTheStateOfAClusterHasOneSeries: each cluster has the series of its present state alone,
// and none once the term ends; and each change is returned.
func TestTheStateOfAClusterHasOneSeries(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	drain := &quota.ClusterCordon{Drain: true}
	for _, step := range []struct {
		loads []state.ClusterLoad
		want  []string
		news  []event.ClusterChanged
	}{
		{[]state.ClusterLoad{{Name: "east", Nodes: 2, Returning: true}}, []string{`cluster="east",state="returning"`}, nil},
		{[]state.ClusterLoad{{Name: "east", Nodes: 2, Live: 1}, {Name: "west"}}, []string{`cluster="east",state="ready"`, `cluster="west",state="no nodes"`}, []event.ClusterChanged{
			{Cluster: "east", State: "ready", Was: "returning", Live: 1},
		}},
		{[]state.ClusterLoad{{Name: "east", Nodes: 2, Live: 1, Silent: since}, {Name: "west", Nodes: 1}}, []string{`cluster="east",state="silent"`, `cluster="west",state="ready"`}, []event.ClusterChanged{
			{Cluster: "east", State: "silent", Was: "ready", Live: 1}, {Cluster: "west", State: "ready", Was: "no nodes"},
		}},
		{[]state.ClusterLoad{{Name: "east", Nodes: 2, Live: 1, Cordon: drain}, {Name: "west", Nodes: 1, Cordon: &quota.ClusterCordon{}}}, []string{`cluster="east",state="draining"`, `cluster="west",state="cordoned"`}, []event.ClusterChanged{
			{Cluster: "east", State: "draining", Was: "silent", Live: 1}, {Cluster: "west", State: "cordoned", Was: "ready"},
		}},
		{[]state.ClusterLoad{{Name: "east", Nodes: 2, Cordon: drain}}, []string{`cluster="east",state="drained"`}, []event.ClusterChanged{{Cluster: "east", State: "drained", Was: "draining"}}},
		{nil, nil, nil},
	} {
		if diff := cmp.Diff(step.news, m.showClusters(step.loads, zap.NewNop())); diff != "" {
			t.Errorf("of %+v the changes are (-want +got):\n%s", step.loads, diff)
		}
		want := ""
		if len(step.want) > 0 {
			want = "# HELP muster_cluster_state 1 for the state of the cluster: ready, silent, returning, cordoned, draining, drained, leaving, left or \"no nodes\"; on the leader.\n# TYPE muster_cluster_state gauge\n"
		}
		for _, labels := range step.want {
			want += "muster_cluster_state{" + labels + "} 1\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "muster_cluster_state"); err != nil {
			t.Errorf("of %+v: %v", step.loads, err)
		}
	}
}

// TestAClusterWithoutSeriesIsWatched: there are series of the first clusters only, and changes of
// all; a cluster that is none of the first any more loses its series.
func TestAClusterWithoutSeriesIsWatched(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewRegistry())
	var all []state.ClusterLoad
	for i := range mostLabels + 1 {
		all = append(all, state.ClusterLoad{Name: fmt.Sprintf("c%04d", i), Nodes: 1})
	}
	shown := func(what string, loads []state.ClusterLoad, want []event.ClusterChanged) {
		t.Helper()
		if diff := cmp.Diff(want, m.showClusters(loads, zap.NewNop())); diff != "" {
			t.Errorf("%s: the changes are (-want +got):\n%s", what, diff)
		}
		if states, live := testutil.CollectAndCount(m.clusterState), testutil.CollectAndCount(m.clusterLive); states != min(len(loads), mostLabels) || live != states {
			t.Errorf("%s: there are %d series of states and %d of workloads, of %d clusters", what, states, live, len(loads))
		}
	}
	shown("at first", all, nil)
	all[mostLabels].Silent = time.Unix(1, 0)
	shown("when the last is silent", all, []event.ClusterChanged{{Cluster: all[mostLabels].Name, State: "silent", Was: "ready"}})
	shown("when there is a new first one", append([]state.ClusterLoad{{Name: "a", Nodes: 1}}, all...), nil)
	shown("when two are left", all[:2], nil)
}
