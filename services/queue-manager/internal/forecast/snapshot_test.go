package forecast

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// A workload of a kind that no cluster serves has no estimated start, although there is room
// for it; behind it in a strict queue nothing has one.
func TestAKindThatIsNotServedHasNoStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	waits := func(id workload.ID, order int64, why *workload.Reason) state.StoredWorkload {
		return state.StoredWorkload{Order: order, Record: workload.Record{
			Workload: workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindAppWrapper, Name: string(id), Digest: string(id), PodSets: []workload.PodSet{{
				Name: "w", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, resource.Pods: 1}},
			}}},
			Phase: workload.Queued, Attempt: 1, Times: workload.Times{Submitted: now.Add(time.Duration(order) * time.Second)}, Reason: why,
		}}
	}
	const torch, next = workload.ID("0b7f6c1e-4f0a-5c1d-9d3e-000000000001"), workload.ID("0b7f6c1e-4f0a-5c1d-9d3e-000000000002")
	why := &workload.Reason{Kind: workload.ReasonNeverFits, Message: "no cluster serves the kind A of b/v1; it waits", Kinds: []workload.ObjectKind{"b/v1 A"}}
	for strategy, starts := range map[string]bool{quota.StrictFIFO: false, quota.BestEffortFIFO: true} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			live := store.LiveState{Stored: state.Stored{
				Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}, Strategy: strategy}},
				Policy: quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "q", Strategy: strategy}}},
				Nodes: []state.StoredNode{{Present: true, Node: capacity.Node{
					Cluster: "c", Name: "node", Ready: true, Allocatable: resource.List{"cpu": 4, resource.Pods: 10},
				}}},
				Workloads: []state.StoredWorkload{waits(torch, 1, why), waits(next, 2, nil)},
			}}
			var history estimate.History
			forecast, err := estimate.FastForward(snapshotOf(now, live), &history, estimate.Bounds{Ends: mostEnds, Horizon: horizon})
			if err != nil {
				t.Fatal(err)
			}
			if at, known := forecast.Starts[torch]; known {
				t.Errorf("it starts at %s", at)
			}
			if _, known := forecast.Starts[next]; known != starts {
				t.Errorf("that the next one has a start is %t, want %t", known, starts)
			}
			if live.Workloads[0].PodSets[0].Template.NodeSelector != nil {
				t.Error("the live state was changed")
			}
		})
	}
}
