package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// submitOther submits a second gang, of one pod.
func (s *stage) submitOther() {
	s.Submit(&event.WorkloadSubmitted{Manifest: []byte(`{}`), Workload: workload.Workload{
		ID: "other", Queue: "q", Kind: "RayCluster", Name: "other",
		PodSets: []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}}},
	}}, nil, s.now)
}

// A cluster whose watcher is silent gets no new gang, and the reason says since when; the
// gang that runs there stays. When it reports again the waiting gang starts.
func TestASilentClusterGetsNoNewGang(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 4)
	s.SetSilentAfter(45 * time.Second)
	s.CatchUp()
	s.BeginDecisions(s.now)
	s.created(true)
	s.step(0)
	last := s.now
	for range 46 {
		s.step(time.Second)
	}
	s.submitOther()
	s.step(0)
	other := s.live.Get("other")
	if other.Phase != workload.Queued || other.Reason == nil || !strings.Contains(other.Reason.Message, `cluster "c" has not reported since `+last.UTC().Format(time.RFC3339)) {
		t.Errorf("the other gang is %s because of %+v, want it queued because of the silence", other.Phase, other.Reason)
	}
	if s.gang().Phase != workload.Running {
		t.Errorf("the gang that runs there is %s", s.gang().Phase)
	}
	s.node("n3", nil)
	s.step(time.Second)
	if got := s.live.Get("other").Phase; got != workload.Admitted {
		t.Errorf("when the watcher reports again the gang is %s, want admitted", got)
	}
}

// A new term takes no cluster for silent before it could have heard of it.
func TestATermBeginsWithNoClusterSilent(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 4)
	s.SetSilentAfter(45 * time.Second)
	s.CatchUp()
	s.now = s.now.Add(time.Hour)
	s.BeginDecisions(s.now)
	s.step(44 * time.Second)
	s.submitOther()
	s.step(0)
	if got := s.live.Get("other").Phase; got != workload.Admitted {
		t.Errorf("the gang is %s, want admitted", got)
	}
}
