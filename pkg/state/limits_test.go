package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// One queue is full: the reason says so, another queue goes on, the same submission is
// taken when there is room, and a submission that is in already gets that answer.
func TestAFullQueueRefusesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	s, now := newTestState(), time.Unix(1_000_000, 0)
	s.SetLimits(Limits{Live: 4, InQueue: 2})
	submit := func(queue string, n int) *workload.Reason {
		t.Helper()
		w := workload.Workload{
			ID: event.WorkloadID(queue, fmt.Sprint(n)), Queue: queue, Kind: "RayCluster", Name: fmt.Sprint(n), Digest: "d",
			PodSets: []workload.PodSet{{Name: "head", Role: workload.RoleHead, Count: 1}},
		}
		s.Submit(&event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(`{}`)}, nil, now)
		messages := s.Flush().Messages
		if rejected, ok := messages[len(messages)-1].Payload.(*event.WorkloadRejected); ok {
			return &rejected.Reason
		}
		return nil
	}
	for n := range 2 {
		if why := submit("loose", n); why != nil {
			t.Fatalf("workload %d was refused: %v", n, why)
		}
	}
	if why := submit("loose", 2); why == nil || why.Kind != workload.ReasonFull {
		t.Errorf("beyond the limit the answer is %v, want Full", why)
	}
	if why := submit("loose", 1); why != nil {
		t.Errorf("one that is in already was refused: %v", why)
	}
	if why := submit("strict", 0); why != nil {
		t.Errorf("another queue was refused: %v", why)
	}
	s.Cancel(&event.WorkloadCancel{Workload: event.WorkloadID("loose", "0")}, now)
	if why := submit("loose", 2); why != nil {
		t.Errorf("with room again the answer is %v", why)
	}
}

// What a queue does not allow one workload is refused, whichever interface it came
// through, with the value, the maximum and where the limit is set.
func TestAQueuesLimitsAreHeldAgainstEachSubmission(t *testing.T) {
	t.Parallel()
	s := New(1, Stored{MaxEvent: 1 << 20, Queues: []Queue{
		{Name: "q", Namespaces: []string{"ns"}, Rules: workload.Rules{Limits: workload.Limits{Workloads: 1}}},
	}})
	refused := func(id, manifest string, change func(*workload.Workload)) *workload.Reason {
		w := workload.Workload{ID: workload.ID(id), Queue: "q", Kind: "RayCluster", Name: id, PodSets: []workload.PodSet{{Name: "head", Count: 1}}}
		change(&w)
		s.Submit(&event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(manifest)}, nil, time.Unix(1_000_000, 0))
		for _, m := range s.Flush().Messages {
			if rejected, is := m.Payload.(*event.WorkloadRejected); is {
				return &rejected.Reason
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		manifest, want string
		change         func(*workload.Workload)
	}{
		"grace": {`{}`, `checkpoint grace: is 87600h0m0s, but queue "q" allows 30m0s at most; ask for that or less`, func(w *workload.Workload) {
			w.Life.CheckpointGrace = workload.Duration(87600 * time.Hour)
		}},
		"two at once":       {`{}`, "; also: priority: is 2000", func(w *workload.Workload) { w.Priority, w.Life.ReadyDeadline = 2000, workload.Duration(time.Hour*9) }},
		"termination grace": {`{"spec":{"terminationGracePeriodSeconds":31536000}}`, "spec.terminationGracePeriodSeconds: is 31536000", func(*workload.Workload) {}},
	} {
		t.Run(name, func(t *testing.T) {
			why := refused(name, c.manifest, c.change)
			if why == nil || why.Kind != workload.ReasonForbidden || !strings.Contains(why.Message, c.want) || !strings.Contains(why.Message, "queues file") {
				t.Errorf("%s: %+v, want it refused with %q", name, why, c.want)
			}
		})
	}
	if why := refused("first", `{}`, func(*workload.Workload) {}); why != nil {
		t.Errorf("the first is refused: %+v", why)
	}
	if why := refused("second", `{}`, func(*workload.Workload) {}); why == nil || why.Kind != workload.ReasonFull {
		t.Errorf("beyond the queue's own number of workloads: %+v, want Full", why)
	}
}

// The autoscaler of a running gang may not ask for what its submission could not.
func TestAGangDoesNotGrowBeyondItsQueuesLimits(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Limits: workload.Limits{Pods: 4}}, 5)
	s.created(true)
	s.sizes(4)
	s.is(workload.Running, workload.ReasonGrowing)
	if reason := s.gang().Reason; !strings.Contains(reason.Message, `pods: are 5, but queue "q" allows a workload 4 at most`) {
		t.Errorf("the reason is %+v", reason)
	}
	s.has(2)
	s.sizes(3)
	s.step(time.Second)
	s.has(3)
}
