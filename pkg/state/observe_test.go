package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// started is a state of a new term with a gang of one pod that is in the given
// phase on a node.
func started(phase workload.Phase, ready bool, admitted time.Time) *State {
	gang := workload.Workload{ID: "w", Queue: "loose", PodSets: []workload.PodSet{
		{Name: "workers", Role: workload.RoleWorker, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}},
	}}
	return New(2, Stored{
		MaxEvent: 1 << 20, Queues: []Queue{{Name: "loose", Namespaces: []string{"loose"}, Strategy: quota.BestEffortFIFO}},
		Nodes: []StoredNode{{Present: true, Version: event.Version{Session: 1, Seq: 5}, Node: capacity.Node{
			Cluster: "c", Name: "n", Ready: ready, Allocatable: resource.List{"cpu": 4, "pods": 10},
		}}},
		Workloads: []StoredWorkload{{Order: 1, Record: workload.Record{
			Workload: gang, Phase: phase, Attempt: 1, Cluster: "c", Holding: true,
			Placements: []workload.Placement{{PodSet: "workers", Node: "n", Pods: 1}}, Times: workload.Times{Admitted: admitted},
		}}},
	})
}

func TestANewTermCountsTheTimeOfANodeThatIsNotReady(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	s := started(workload.Running, false, now)
	s.Tick(now, time.Minute)
	s.Decide(now)
	if got := s.live.Get("w").Phase; got != workload.Running {
		t.Errorf("the gang is %s before the grace is over", got)
	}
	s.Tick(now.Add(2*time.Minute), time.Minute)
	s.Decide(now.Add(2 * time.Minute))
	if got := s.live.Get("w").Phase; got != workload.Evicting {
		t.Errorf("the gang is %s after the grace, want it evicted", got)
	}
}

func TestAGangThatDoesNotComeToRunReportsWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	s := started(workload.Dispatched, true, now)
	s.Tick(now.Add(slowStart-time.Second), time.Minute)
	s.Decide(now.Add(slowStart - time.Second))
	if reason := s.live.Get("w").Reason; reason != nil {
		t.Errorf("a reason too early: %+v", reason)
	}
	s.Tick(now.Add(slowStart), time.Minute)
	s.Decide(now.Add(slowStart))
	if reason := s.live.Get("w").Reason; reason == nil || !strings.Contains(reason.Message, "0 of 1 pods are ready") {
		t.Errorf("the reason is %+v", reason)
	}
	s.Gang(&event.GangObserved{Version: event.Version{Session: 2}, Cluster: "c", Workload: "w", Pods: []event.GangPod{
		{Name: "p", Attempt: 1, PodSet: "workers", Node: "n", Phase: "Running", Ready: true, Requests: resource.List{"cpu": 1, "pods": 1}},
	}}, now.Add(time.Minute), now.Add(time.Minute))
	if e := s.live.Get("w"); e.Phase != workload.Running || e.Reason != nil {
		t.Errorf("with all pods ready it is %s because of %+v", e.Phase, e.Reason)
	}
}

// A gang that was evicted from one cluster may be seen there when it is already
// starting in another.
func TestClustersReportTheirOwnPods(t *testing.T) {
	t.Parallel()
	s, now := newTestState(), time.Unix(1_000_000, 0)
	observe := func(cluster string, seq uint64, nodes ...string) {
		o := &event.GangObserved{Version: event.Version{Session: 1, Seq: seq}, Cluster: cluster, Workload: "w"}
		for _, n := range nodes {
			o.Pods = append(o.Pods, event.GangPod{Name: "p", Attempt: 1, Node: n, Phase: "Running", Requests: resource.List{"cpu": 1, "pods": 1}})
		}
		s.Gang(o, now, now)
	}
	for _, cluster := range []string{"a", "b"} {
		s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: 1}, Node: capacity.Node{
			Cluster: cluster, Name: "n", Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10},
		}}, now)
	}
	observe("a", 2, "n")
	observe("b", 2, "n")
	observe("a", 3)
	if n := s.nodes[admission.NodeKey{Cluster: "a", Name: "n"}]; len(n.unreserved) != 0 {
		t.Errorf("cluster a keeps %v of pods that are gone", n.unreserved)
	}
	if n := s.nodes[admission.NodeKey{Cluster: "b", Name: "n"}]; len(n.unreserved) != 1 {
		t.Error("cluster b lost the pods that are there")
	}
}

// A watcher was away while all pods of a running gang went. Its full list has the gang no
// longer, which counts as an observation without pods.
func TestAGangThatAFullListLacksHasLostItsPods(t *testing.T) {
	t.Parallel()
	heal := 5 * time.Minute
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: workload.Duration(heal)}}, 3)
	s.created(true)
	s.is(workload.Running, "")
	s.Synced(&event.CapacitySynced{Version: event.Version{Session: 2, Seq: 1}, Cluster: "c", Nodes: []string{"n0", "n1", "n2"}}, s.now)
	s.step(settleTime)
	s.is(workload.Running, workload.ReasonPodLost)
	s.step(heal)
	s.is(workload.Evicting, workload.ReasonPodLost)
}
