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

// TestStatusNamesGangsToSee: gangs that do not go on by themselves are named, the oldest first, and
// those with misplaced pods apart; others, and those that have just begun something, are not.
func TestStatusNamesGangsToSee(t *testing.T) {
	t.Parallel()
	l := open(t)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	never := &workload.Reason{Kind: workload.ReasonNeverFits, Message: "no node is so large"}
	beside := &workload.Reason{Kind: workload.ReasonBesidePlan, Message: "1 of 1 pods are on other nodes than planned"}
	trusted := &workload.Reason{Kind: workload.ReasonBesidePlan, Message: beside.Message + state.PlacedByScheduler}
	queued := func(name string, minutes int, reason *workload.Reason) workload.Record {
		return workload.Record{Workload: workload.Workload{Name: name}, Phase: workload.Queued, Reason: reason, Times: workload.Times{Submitted: ago(minutes)}}
	}
	placed := func(name string, phase workload.Phase, admitted int, since time.Time, reason *workload.Reason) workload.Record {
		r := workload.Record{Workload: workload.Workload{Name: name}, Phase: phase, Holding: true, Reason: reason, Times: workload.Times{Submitted: ago(1000), Admitted: ago(admitted)}}
		switch {
		case phase == workload.Running:
			r.Times.Running = since
		case phase.Final():
			r.Times.Finished = since
		default:
			r.EvictAt = since
		}
		return r
	}
	records := []workload.Record{
		queued("waits", 900, &workload.Reason{Kind: workload.ReasonFit, Message: "no room"}),
		placed("starts", workload.Dispatched, 10, time.Time{}, nil),
		placed("goes", workload.Evicting, 300, ago(2), nil),
		placed("runs", workload.Running, 300, ago(200), nil),
		placed("image", workload.Dispatched, 20, time.Time{}, nil),
		placed("left", workload.Cancelling, 300, ago(30), nil),
		placed("ended", workload.Succeeded, 300, ago(40), nil),
		placed("beside", workload.Running, 300, ago(200), beside),
		placed("trusted", workload.Running, 300, ago(200), trusted),
	}
	for i := range query.MaxGangsToSee {
		records = append(records, queued("never-"+string(rune('a'+i)), 100-i, never))
	}
	for i, of := range records {
		changes := admitted(int64(i+1), of.Name, 1, 1, 1)
		r := &changes.Added[0].Record
		r.Phase, r.Holding, r.Reason, r.Times, r.EvictAt = of.Phase, of.Holding, of.Reason, of.Times, of.EvictAt
		if !of.Holding {
			r.Cluster, changes.Reserved = "", nil
		}
		l.commit(t, changes)
	}
	got := query.StatusAnswer{At: now}
	if err := l.Status(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got   query.GangsToSee
		names []string
		inAll int
	}{
		"stuck":     {got.Stuck, []string{"never-a", "never-b", "never-c", "never-d", "never-e"}, 8},
		"misplaced": {got.Misplaced, []string{"beside"}, 1},
		"trusted":   {got.TrustedPlaces, []string{"trusted"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, g := range c.got.Gangs {
				names = append(names, g.Name)
			}
			if diff := cmp.Diff(c.names, names); diff != "" || c.got.InAll != c.inAll {
				t.Errorf("%d in all, want %d; names (-want +got):\n%s", c.got.InAll, c.inAll, diff)
			}
		})
	}
	if first := got.Stuck.Gangs; len(first) > 0 && (first[0].Queue != "q" || first[0].Namespace != "ns" || first[0].Why != never.Message || !first[0].Since.Equal(ago(100))) {
		t.Errorf("the first is %+v", first[0])
	}
}
