package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A gang that does not become ready is torn down whole, waits longer each time,
// and has failed after the last time, with the cause.
func TestAGangThatIsNotReadyInTimeIsQueuedAgainAndFailsInTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{
		Life: workload.Life{ReadyDeadline: seconds(100)}, Requeues: limit(2), BackoffFirst: seconds(10), BackoffMost: seconds(15),
	}, 3)
	for _, backoff := range []int{10, 15} {
		s.is(workload.Admitted, "")
		s.created(false)
		s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending"}
		s.observe()
		s.step(99 * time.Second)
		s.is(workload.Dispatched, workload.ReasonStarting)
		s.step(time.Second)
		s.is(workload.Evicting, workload.ReasonNotReady)
		if command := s.commanded(); command == nil || command.State != event.Absent {
			t.Fatalf("commanded is %+v, want it absent", command)
		}
		s.released()
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(time.Duration(backoff)*time.Second - time.Millisecond)
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(time.Millisecond)
	}
	s.created(false)
	s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending"}
	s.observe()
	s.step(100 * time.Second)
	s.is(workload.Evicting, workload.ReasonNotReady)
	s.Flush()
	s.released()
	changes := s.Flush()
	last := changes.Updated[0]
	if last.Phase != workload.Failed || last.Reason.Kind != workload.ReasonNotReady || !strings.Contains(last.Reason.Message, "0 of 3 pods were ready") {
		t.Errorf("it ended as %s because of %+v", last.Phase, last.Reason)
	}
}

// TestWhatPodsWaitFor: the reason of a gang that does not start names the pod and what it
// waits for, as does the reason of its eviction.
func TestWhatPodsWaitFor(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(100)}, BackoffFirst: seconds(10)}, 3)
	s.created(false)
	s.step(12 * time.Second)
	s.reasonHas("starting: 0 of 3 pods are ready on their nodes: no pod exists yet", "KubeRay operator run?")
	s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending"}
	s.observe()
	s.step(2 * time.Second)
	if message := s.gang().Reason.Message; message != "starting: 0 of 3 pods are ready on their nodes" {
		t.Errorf("of a pod that tells nothing it says %q", message)
	}
	const why = "container ray-worker waits: ImagePullBackOff: x:1: not found"
	s.pods["x"] = event.GangPod{Name: "x", PodSet: "workers", Phase: "Pending", Waits: why}
	s.observe()
	s.step(2 * time.Second)
	s.reasonHas("starting: 0 of 3 pods are ready on their nodes: pod x: " + why)
	s.step(100 * time.Second)
	s.is(workload.Evicting, workload.ReasonNotReady)
	s.reasonHas("0 of 3 pods were ready at the readyDeadline", "pod x: "+why)
}

// An operator that is away fails no gang: its gangs wait and are tried again, as
// often as it takes.
func TestAnOperatorThatIsAwayFailsNoGang(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{
		Life: workload.Life{ReadyDeadline: seconds(100)}, Requeues: limit(0), BackoffFirst: seconds(1), BackoffMost: seconds(2),
	}, 3)
	for range 5 {
		s.created(false)
		s.step(100 * time.Second)
		s.is(workload.Evicting, workload.ReasonNotCreated)
		s.released()
		s.is(workload.Queued, workload.ReasonBackoff)
		s.step(2 * time.Second)
		s.is(workload.Admitted, "")
	}
}

// TestAnObjectThatIsNeverCreatedKeepsNoPlaces: an API server that answers each
// creation with an error, for as long as it likes, keeps the places for the ready
// deadline only. Another gang has them then.
func TestAnObjectThatIsNeverCreatedKeepsNoPlaces(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(100)}, Requeues: limit(0), BackoffFirst: seconds(1000)}, 3)
	s.is(workload.Admitted, "")
	s.step(99 * time.Second)
	s.is(workload.Admitted, workload.ReasonStarting)
	s.step(time.Second)
	s.is(workload.Evicting, workload.ReasonNotCreated)
	if command := s.commanded(); command.State != event.Absent {
		t.Errorf("the command is %s, want %s: a creation that was answered with an error may have been one", command.State, event.Absent)
	}
	s.another("other")
	s.step(0)
	s.isPhase("other", workload.Queued)
	s.released()
	s.is(workload.Queued, workload.ReasonBackoff)
	s.step(0)
	s.isPhase("other", workload.Admitted)
}

// A back-off survives a change of leaders, and a cancellation ends it.
func TestABackoffIsKept(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(100)}, BackoffFirst: seconds(10)}, 3)
	s.created(false)
	s.step(100 * time.Second)
	s.released()
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, Workloads: []StoredWorkload{{Record: s.gang().Record, Order: 1}}}
	for key, n := range s.nodes {
		stored.Nodes = append(stored.Nodes, StoredNode{n.Node, n.version, n.present})
		_ = key
	}
	s.State = New(2, stored)
	s.step(9 * time.Second)
	s.is(workload.Queued, workload.ReasonBackoff)
	explained, err := s.Explain(gangID, s.now)
	if err != nil {
		t.Fatal(err)
	}
	handed, err := s.HandOver(gangID, "", s.now)
	if err != nil {
		t.Fatal(err)
	}
	until := s.now.Add(time.Second).UTC().Format(time.RFC3339)
	for name, got := range map[string]string{
		"explain": explained.Reason.Message, "at once": handed.Known.Reason.Message,
		"another goroutine": handed.Answer(s.admission, true, s.now, func() bool { return false }).Reason.Message,
	} {
		if !strings.Contains(got, "not tried before "+until+". Attempt 1 was evicted: no pod existed at the readyDeadline") {
			t.Errorf("%s says %q, want the cause and the end of the back-off", name, got)
		}
	}
	s.step(time.Second)
	s.is(workload.Admitted, "")

	s.State = New(3, stored)
	s.Cancel(&event.WorkloadCancel{Workload: gangID}, s.now)
	if s.live.Get(gangID) != nil {
		t.Errorf("after its cancellation in back-off the gang is %s", s.live.Get(gangID).Phase)
	}
	s.step(time.Hour)
}

// What could run on is warned before it is deleted.
func TestEvictionsAreAnnounced(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30), MaxRunTime: seconds(1000)}}, 3)
	s.created(true)
	s.Flush()
	s.evictWithGrace(s.gang(), &workload.Reason{Kind: workload.ReasonDrained, Message: "test"}, s.now)
	s.is(workload.Evicting, workload.ReasonDrained)
	command := s.commanded()
	if command.State != event.Present || !command.EvictAt.Equal(s.now.Add(30*time.Second)) {
		t.Errorf("announced with %+v", command)
	}
	s.step(29 * time.Second)
	if command := s.commanded(); command != nil {
		t.Errorf("too early: %+v", command)
	}
	s.step(time.Second)
	if command := s.commanded(); command == nil || command.State != event.Absent {
		t.Errorf("after the grace commanded is %+v", command)
	}
	s.released()
	s.is(workload.Queued, workload.ReasonDrained)
	s.step(0)
	// The second attempt runs as long as it may.
	s.created(true)
	s.step(1000 * time.Second)
	s.is(workload.Cancelling, workload.ReasonMaxRunTime)
	if command := s.commanded(); command.State != event.Present || command.EvictAt.IsZero() {
		t.Errorf("its end is announced with %+v", command)
	}
	s.step(30 * time.Second)
	s.Flush()
	s.released()
	if last := s.Flush().Updated[0]; last.Phase != workload.Cancelled || last.Reason.Kind != workload.ReasonMaxRunTime {
		t.Errorf("it ended as %s because of %+v", last.Phase, last.Reason)
	}
}

// A gang that starts slowly has the same reason until something changes, however often the
// dispatcher and the watcher repeat what they know, and are asked for it.
func TestTheReasonOfASlowStartStays(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*stage){
		"before the ready deadline": func(s *stage) { s.step(time.Second) },
		"with the answers that a passed deadline waits for": func(s *stage) {
			s.step(time.Second)
			for _, q := range s.Questions() {
				s.answer(q.Ask, "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(120)}}, 3)
			s.SetAnswerTimeout(asksFor)
			s.created(false)
			s.step(slowStart)
			s.is(workload.Dispatched, workload.ReasonStarting)
			s.Flush()
			for range 100 {
				run(s)
				s.created(false)
				s.observe()
			}
			s.is(workload.Dispatched, workload.ReasonStarting)
			for _, m := range s.Flush().Messages {
				if changed, ok := m.Payload.(*event.WorkloadChanged); ok {
					t.Errorf("nothing has changed, and it is said to be %s because of %+v", changed.Phase, changed.Reason)
				}
			}
		})
	}
}

// KubeRay's words give way to the state's own when they no longer hold, in one step.
func TestWordsThatNoLongerHoldGiveWay(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(120)}}, 3)
	s.created(false)
	s.step(slowStart)
	for _, message := range []string{"the quota of the namespace is exhausted", ""} {
		s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Message: message}, s.now, s.now)
		s.is(workload.Dispatched, workload.ReasonStarting)
	}
	if got := s.gang().Reason.Message; !strings.HasPrefix(got, slowPrefix) {
		t.Errorf("the reason is %q, want what the gang lacks", got)
	}
	s.run()
	if reason := s.gang().Reason; s.gang().Phase != workload.Running || reason != nil {
		t.Errorf("it is %s because of %+v, want running without a reason", s.gang().Phase, reason)
	}
}
