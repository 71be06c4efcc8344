package engine

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestAClusterReportsItselfOnly: what comes on the subjects of cluster b changes
// nothing of cluster a, is counted, and ends no term; what is true of b is taken in
// afterwards.
func TestAClusterReportsItselfOnly(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0)
	at := func(ahead time.Duration) event.Version {
		return event.Version{Session: now.Add(ahead).UnixNano(), Seq: 1}
	}
	node := func(cluster string, v event.Version, cpu int64) *event.NodeObserved {
		return &event.NodeObserved{Version: v, Node: capacity.Node{Cluster: cluster, Name: "n", Ready: true, Allocatable: resource.List{"cpu": cpu, "pods": 10}}}
	}
	gang := workload.Workload{ID: id, Queue: "q", Name: "gang", Namespace: "ns", PodSets: []workload.PodSet{
		{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}},
	}}
	status := func(cluster string, session int64) *event.GangStatus {
		return &event.GangStatus{Workload: id, Cluster: cluster, Attempt: 1, Session: session, Gone: true, Released: true}
	}
	lies := map[string]struct {
		subject string
		payload event.Payload
	}{
		"a node of another cluster":               {event.NodeSubject("b", "n"), node("a", at(time.Minute), 99)},
		"a node of another name":                  {event.NodeSubject("b", "m"), node("b", at(time.Minute), 99)},
		"the end of a node of another cluster":    {event.NodeSubject("b", "n"), &event.NodeRemoved{Version: at(time.Minute), Cluster: "a", Node: "n"}},
		"an empty list of another cluster":        {event.SyncedSubject("b"), &event.CapacitySynced{Version: at(time.Minute), Cluster: "a"}},
		"pods in another cluster":                 {event.GangSubject("b", id), &event.GangObserved{Version: at(time.Minute), Cluster: "a", Workload: id, Pods: []event.GangPod{{Name: "p", Node: "n", Phase: "Running", Requests: resource.List{"cpu": 4}}}}},
		"a status of another cluster":             {event.StatusSubject("b", id), status("a", now.UnixNano())},
		"a node from the far future":              {event.NodeSubject("b", "n"), node("b", event.Version{Session: math.MaxInt64}, 99)},
		"a list from the far future":              {event.SyncedSubject("b"), &event.CapacitySynced{Version: event.Version{Session: math.MaxInt64}, Cluster: "b"}},
		"a status from the far future":            {event.StatusSubject("b", id), status("b", math.MaxInt64)},
		"a node of absurd size":                   {event.NodeSubject("b", "n"), node("b", at(time.Minute), 1<<62)},
		"a node of a sequence that is not stored": {event.NodeSubject("b", "n"), node("b", event.Version{Session: now.UnixNano(), Seq: math.MaxUint64}, 4)},
	}
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metrics := NewMetrics(prometheus.NewRegistry())
			step := &Step{
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: metrics.unreadable,
				State: state.New(1, state.Stored{
					MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}},
					Nodes: []state.StoredNode{{Node: node("a", at(0), 4).Node, Version: at(0), Present: true}},
					Workloads: []state.StoredWorkload{{Order: 1, Record: workload.Record{
						Workload: gang, Phase: workload.Running, Attempt: 1, Cluster: "a", Holding: true,
						Placements: []workload.Placement{{PodSet: "workers", Node: "n", Pods: 1}},
					}}},
				}),
			}
			apply := func(subject string, payload event.Payload) {
				t.Helper()
				encoded, err := event.Marshal("1", "test", now, "", payload)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := step.applyBatch(t.Context(), []bus.Delivery{{Subject: subject, Data: encoded}}, now); err != nil {
					t.Fatalf("the term ends: %v", err)
				}
			}
			apply(lie.subject, lie.payload)
			if changes := step.State.Flush(); !changes.Empty() {
				t.Errorf("it changes %+v", changes)
			}
			if got := testutil.ToFloat64(metrics.unreadable); got != 1 {
				t.Errorf("%v messages are counted, want 1", got)
			}
			// A status of b about a workload in a comes on the right subject, and is no lie
			// that can be told by its form.
			apply(event.StatusSubject("b", id), status("b", now.UnixNano()))
			if changes := step.State.Flush(); !changes.Empty() {
				t.Errorf("a status of the other cluster changes %+v", changes)
			}
			apply(event.NodeSubject("b", "n"), node("b", at(0), 8))
			changes := step.State.Flush()
			if len(changes.Nodes) != 1 || changes.Nodes[0].Cluster != "b" || changes.Nodes[0].Allocatable["cpu"] != 8 || len(changes.Updated) != 0 {
				t.Errorf("the truth changes %+v", changes)
			}
			apply(event.StatusSubject("a", id), status("a", now.UnixNano()))
			if changes := step.State.Flush(); len(changes.Updated) != 1 {
				t.Errorf("the dispatcher of the other cluster is not heard: %+v", changes)
			}
		})
	}
}

// TestALieAboutTheEpochIsOutdone: the latest session that a thief may claim silences
// the true dispatcher until that one takes the epoch after it, as it does at its start.
func TestALieAboutTheEpochIsOutdone(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0)
	step := &Step{
		Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
		State: state.New(1, state.Stored{
			MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}},
			Workloads: []state.StoredWorkload{{Order: 1, Record: workload.Record{
				Workload: workload.Workload{ID: id, Queue: "q", Name: "gang", Namespace: "ns"}, Phase: workload.Admitted, Attempt: 1, Cluster: "b", Holding: true,
			}}},
		}),
	}
	phase := func(session int64, of workload.ID, at time.Time) workload.Phase {
		t.Helper()
		encoded, err := event.Marshal("1", "test", now, "", &event.GangStatus{Workload: of, Cluster: "b", Attempt: 1, Session: session, Created: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := step.applyBatch(t.Context(), []bus.Delivery{{Subject: event.StatusSubject("b", of), Data: encoded}}, at); err != nil {
			t.Fatal(err)
		}
		record, _ := step.State.Record(id)
		return record.Phase
	}
	lie := now.Add(event.AheadMost).UnixNano()
	if got := phase(lie, "made-up", now); got != workload.Admitted {
		t.Fatalf("a status of another workload makes it %s", got)
	}
	if got := phase(now.UnixNano(), id, now); got != workload.Admitted {
		t.Fatalf("an earlier session is heard: %s", got)
	}
	if got := phase(lie+1, id, now.Add(time.Second)); got == workload.Admitted {
		t.Error("the session after the lie is not heard")
	}
}
