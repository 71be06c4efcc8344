package state

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A job that ends loses its pods, too; that is no loss.
func TestTheEndOfAJobIsNoLoss(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}, KeepFinished: seconds(60)}, 3)
	s.created(true)
	s.loses("workers", "")
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Outcome: event.OutcomeSucceeded}, s.now, s.now)
	s.step(settleTime)
	s.is(workload.Succeeded, workload.ReasonJobEnded)
	// Its cluster stays for so long, then it is shut down.
	s.Flush()
	s.step(57 * time.Second)
	if command := s.commanded(); command != nil {
		t.Errorf("too early: %+v", command)
	}
	s.step(2 * time.Second)
	if command := s.commanded(); command == nil || command.State != event.Ended {
		t.Errorf("commanded is %+v, want the end of the cluster", command)
	}
	s.step(time.Hour)
	if command := s.commanded(); command != nil {
		t.Errorf("commanded twice: %+v", command)
	}
}

// A job whose head is replaced begins again, because Ray has forgotten it; a
// cluster does not, and neither does a job that KubeRay tries again with another
// RayCluster.
func TestAJobWithoutItsHeadBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, rayCluster string
		want             workload.Phase
	}{
		{"RayJob", "a", workload.Evicting}, {"RayJob", "b", workload.Running}, {"RayCluster", "a", workload.Running},
	} {
		t.Run(c.kind, func(t *testing.T) {
			s := newStage(t, workload.Rules{}, 3)
			s.gang().Kind = c.kind
			s.created(true)
			for _, step := range []struct{ name, rayCluster string }{{"head", "a"}, {"", ""}, {"new-head", c.rayCluster}} {
				s.loses("headgroup", "")
				if step.name != "" {
					s.pods[step.name] = event.GangPod{Name: step.name, PodSet: "headgroup", RayCluster: step.rayCluster, Node: s.place("headgroup"),
						Phase: "Running", Ready: true, Requests: resource.List{"cpu": 4, "pods": 1}}
				}
				s.observe()
			}
			s.step(settleTime)
			if got := s.gang().Phase; got != c.want {
				t.Errorf("%s with its next head in RayCluster %s is %s, want %s", c.kind, c.rayCluster, got, c.want)
			}
		})
	}
}

// A cluster that its owner makes smaller has lost nothing: it runs on, and as long
// as the dispatcher does not tell what is to be kept it keeps its places.
func TestASmallerClusterIsWhole(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(60)}}, 3)
	s.created(true)
	s.loses("workers", s.place("workers"))
	s.step(settleTime)
	s.is(workload.Running, workload.ReasonPodLost)
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Sizes: map[string]int{"workers": 1}}, s.now, s.now)
	s.step(time.Hour)
	s.is(workload.Running, "")
	if e := s.gang(); e.Reason != nil || len(e.Placements) != 3 {
		t.Errorf("reason %+v, places %v", e.Reason, e.Placements)
	}
}

// KubeRay's retry of a job takes all pods of its RayCluster away; that is no lost
// pod, also to a job that asks to be evicted for one.
func TestARetryOfKubeRayIsNoLoss(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{true, false} {
		t.Run(fmt.Sprintf("all pods %t", all), func(t *testing.T) {
			s := newStage(t, workload.Rules{Life: workload.Life{OnPodLoss: workload.EvictOnLoss}}, 3)
			s.gang().Kind = "RayJob"
			s.created(true)
			s.loses("workers", "")
			if all {
				s.loses("headgroup", "")
			}
			s.step(settleTime)
			want := workload.Evicting
			if all {
				want = workload.Running
			}
			s.is(want, workload.ReasonPodLost)
		})
	}
}
