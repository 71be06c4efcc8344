package state

import (
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// A release comes after Gone or Outcome. One that comes without, of a gang that is not
// torn down, is not believed: its pods may run.
func TestAReleaseOfARunningGangNeedsItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reported event.GangStatus
		freed    bool
	}{
		"nothing else":        {event.GangStatus{Created: true, Released: true}, false},
		"the object is gone":  {event.GangStatus{Created: true, Gone: true, Released: true}, true},
		"the job has its end": {event.GangStatus{Created: true, Outcome: event.OutcomeSucceeded, Released: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(true)
			s.is(workload.Running, "")
			s.Flush()
			c.reported.Workload, c.reported.Cluster, c.reported.Attempt = gangID, "c", 1
			s.Status(&c.reported, s.now, s.now)
			if freed := s.Flush().Freed; (len(freed) > 0) != c.freed {
				t.Errorf("freed are %v, want some: %v", freed, c.freed)
			}
			if !c.freed {
				s.is(workload.Running, "")
			}
		})
	}
}

// Pods of an earlier attempt take their nodes beside what is reserved for the present
// one, also on the same node.
func TestPodsOfAnEarlierAttemptAreChargedApartFromThePlaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	s.gang().Attempt = 2
	on := s.place("workers")
	s.seq++
	s.Gang(&event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID, Pods: []event.GangPod{
		{Name: "old", Attempt: 1, PodSet: "workers", Node: on, Phase: "Running", Requests: resource.List{"cpu": 4, "pods": 1}},
	}}, s.now, s.now)
	n := s.nodes[admission.NodeKey{Cluster: "c", Name: on}]
	if got := n.unreserved[gangID]["cpu"]; got != 4 {
		t.Errorf("beside the places node %s has %d CPU charged, want 4", on, got)
	}
}

// What keeps a dispatcher from creating the object is the workload's reason, and that
// of its eviction when the deadline has passed.
func TestAGangThatIsNotCreatedReportsWhy(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 3)
	const why = "attempt 2 waits for the removal of pods"
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Message: why}, s.now, s.now)
	s.is(workload.Admitted, workload.ReasonStarting)
	if got := s.gang().Reason.Message; got != why {
		t.Errorf("the reason is %q, want %q", got, why)
	}
	s.created(false)
	if e := s.gang(); e.Phase != workload.Dispatched || e.Reason != nil {
		t.Errorf("once it is created it is %s because of %+v", e.Phase, e.Reason)
	}
}
