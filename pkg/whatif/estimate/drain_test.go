package estimate_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/pkg/whatif/world"
)

// TestDrainedGangsStartElsewhere: a gang that goes from a cordoned node waits for another one.
func TestDrainedGangsStartElsewhere(t *testing.T) {
	t.Parallel()
	queues, policy, nodes := fleet(quota.BestEffortFIFO)
	nodes = append(nodes, capacity.Node{Cluster: "c", Name: "other", Ready: true, Allocatable: resource.List{gpu: gpus, resource.Pods: 100}})
	gangs := []workload.Workload{gang("a", 4, time.Hour), gang("b", 4, 2*time.Hour), gang("c", 4, time.Hour)}
	w := world.New(world.Options{Start: start, Queues: queues, Policy: policy, Nodes: nodes})
	s := estimate.Snapshot{Now: start, Queues: queues, Policy: policy, Nodes: nodes}
	for _, g := range gangs {
		if _, err := w.Submit(g, ""); err != nil {
			t.Fatal(err)
		}
		if r, _ := w.Record(g.ID); r.Holding {
			s.Running = append(s.Running, r)
		} else {
			s.Waiting = append(s.Waiting, r)
		}
	}
	first := &s.Running[0]
	first.Phase, first.EvictAt, first.Reason = workload.Evicting, start, &workload.Reason{Kind: workload.ReasonDrained}
	for i := range nodes {
		nodes[i].Cordoned = nodes[i].Name == first.Placements[0].Node
	}
	got, err := estimate.FastForward(s, exact{}, estimate.Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if at, want := got.Starts[gangs[0].ID], start.Add(2*time.Hour); !at.Equal(want) {
		t.Errorf("it starts at %s, want %s; the forecast is %+v", at, want, got)
	}
}
