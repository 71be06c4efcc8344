package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestStatusCountsOnce: each workload counts in its phase, and in its cluster while it holds
// places there; a cluster counts by its nodes alone, too.
func TestStatusCountsOnce(t *testing.T) {
	t.Parallel()
	l := open(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l.commit(t, state.Changes{Nodes: []state.NodeRow{
		{Node: capacity.Node{Cluster: "b", Name: "n", Ready: false, Allocatable: resource.List{"cpu": 1}}, Version: event.Version{Session: 1, Seq: 2}, Present: true},
	}})
	for i, c := range []struct {
		name  string
		phase workload.Phase
		holds bool
		after time.Duration
		hold  *workload.Hold
	}{
		{"first", workload.Running, true, 2 * time.Hour, nil}, {"second", workload.Admitted, true, time.Hour, nil}, {"ends", workload.Succeeded, true, 3 * time.Hour, nil},
		{"waits", workload.Queued, false, 0, nil}, {"held", workload.Queued, false, 0, &workload.Hold{By: "olga", Since: at}},
	} {
		changes := admitted(int64(i+1), c.name, 1, 1, 1)
		r := &changes.Added[0].Record
		r.Phase, r.Holding, r.Hold = c.phase, c.holds, c.hold
		r.Times.Admitted = at.Add(c.after)
		if !c.holds {
			r.Cluster, r.Times.Admitted, changes.Reserved = "", time.Time{}, nil
		}
		l.commit(t, changes)
	}
	var got query.StatusAnswer
	if err := l.Status(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[workload.Phase]int{workload.Running: 1, workload.Admitted: 1, workload.Succeeded: 1, workload.Queued: 2}, got.Workloads); diff != "" || got.HeldWorkloads != 1 {
		t.Errorf("%d are held; phases (-want +got):\n%s", got.HeldWorkloads, diff)
	}
	if diff := cmp.Diff([]query.ClusterStatus{
		{Name: "b", Nodes: 1}, {Name: "c", Nodes: 1, ReadyNodes: 1, Live: 3, LiveSince: at.Add(time.Hour)},
	}, got.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}
