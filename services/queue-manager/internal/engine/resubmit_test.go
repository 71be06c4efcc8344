package engine

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// rejectedSince is a stream of submissions with the last event about each.
type rejectedSince struct {
	kept
	last bus.Delivery
}

func (r rejectedSince) LastEvent(context.Context, string, workload.ID) (*bus.Delivery, error) {
	return &r.last, nil
}

// TestWhatWasGivenUpIsNotTakenInAgain: a workload was accepted in the lost time, and then its
// submitter was told that it cannot be stored, or is lost. Another term does not queue it again,
// unless it was submitted again since.
func TestWhatWasGivenUpIsNotTakenInAgain(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746577"
	now := time.Unix(1_800_000_000, 0).UTC()
	w := workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "w", PodSets: []workload.PodSet{
		{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}},
	}}
	message := func(subject string, p event.Payload, stored time.Time) bus.Delivery {
		data, err := event.Marshal("1", "test", now, "", p)
		if err != nil {
			t.Fatal(err)
		}
		return bus.Delivery{Subject: subject, Data: data, Stored: stored, Sequence: 1}
	}
	for name, c := range map[string]struct {
		reason    workload.ReasonKind
		submitted time.Duration // after the event
		queued    bool
	}{
		"it cannot be stored":       {workload.ReasonNotStorable, -time.Second, false},
		"it was lost":               {workload.ReasonRestored, -time.Second, false},
		"it was submitted again":    {workload.ReasonNotStorable, time.Second, true},
		"another had the same name": {workload.ReasonDuplicate, -time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := &Step{
				State:   state.New(1, state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}}}}),
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
			}
			rejected := &event.WorkloadRejected{Workload: id, Queue: "q", Reason: workload.Reason{Kind: c.reason, Message: "no"}}
			_, err := Recovery{
				Step: step, LastCommit: now, Now: now, Save: func([]bus.Delivery) error { return nil },
				Found: relay.Found{LastEvents: []relay.LastEvent{{Record: workload.Record{Workload: w, Phase: workload.Queued, Attempt: 1}}}},
				Submissions: rejectedSince{
					kept{message(event.KeptSubject("q"), &event.WorkloadSubmitted{Manifest: json.RawMessage(`{"kind":"RayCluster"}`), Workload: w}, now.Add(c.submitted))},
					message(event.EventsSubject("q", id), rejected, now),
				},
			}.Run(t.Context())
			if err != nil || step.State.Has(id) != c.queued {
				t.Errorf("it is queued again: %t, %v; want %t", step.State.Has(id), err, c.queued)
			}
		})
	}
}
