package engine

import (
	"strings"
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

// TestATakedownThatOnlyAnEventShowsIsAskedAgain: the restored database has a gang as running, NATS
// has lost the request, and the command keeps the object until the grace is over. Only the last
// event shows that the gang was to be taken down.
func TestATakedownThatOnlyAnEventShowsIsAskedAgain(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746575"
	now := time.Unix(1_800_000_000, 0).UTC()
	because := func(kind workload.ReasonKind) *workload.Reason {
		return &workload.Reason{Kind: kind, Message: "by a test"}
	}
	running := workload.Record{
		Workload: workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "w", PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}},
		}},
		Phase: workload.Running, Attempt: 1, Cluster: "c", Holding: true,
		Placements: []workload.Placement{{PodSet: "headgroup", Node: "a", Pods: 1}},
	}
	for name, c := range map[string]struct {
		phase   workload.Phase
		attempt int
		reason  workload.ReasonKind
		// requeued is the attempt that an event shows to be requeued.
		requeued int
		cancel   bool
		want     workload.Phase
	}{
		"being requeued":                      {workload.Evicting, 1, workload.ReasonRequeued, 1, false, workload.Evicting},
		"being requeued, and asked once more": {workload.Evicting, 1, workload.ReasonInvalid, 1, false, workload.Evicting},
		"requeued":                            {workload.Queued, 2, workload.ReasonFit, 1, false, workload.Evicting},
		"being cancelled":                     {workload.Cancelling, 1, workload.ReasonCancelled, 0, true, workload.Cancelling},
		"preempted":                           {workload.Evicting, 1, workload.ReasonPreempted, 0, false, workload.Running},
		"an earlier attempt requeued":         {workload.Running, 1, workload.ReasonPending, 0, false, workload.Running},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := running
			last.Phase, last.Attempt, last.Reason, last.CancelRequested = c.phase, c.attempt, because(c.reason), c.cancel
			data, err := event.Marshal("1", "test", now, "", &event.WorkloadChanged{Record: last})
			if err != nil {
				t.Fatal(err)
			}
			step := &Step{
				State: state.New(1, state.Stored{
					MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}}},
					Workloads: []state.StoredWorkload{{Order: 1, Record: running}},
				}),
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
			}
			r, err := Recovery{
				Step: step, Submissions: nothingKept{}, Now: now, Save: func([]bus.Delivery) error { return nil },
				Found: relay.Found{LastEvents: []relay.LastEvent{{
					Record: last, Requeued: c.requeued, Delivery: bus.Delivery{Subject: event.EventsSubject("q", id), Data: data, Stored: now, Sequence: 1},
				}}},
			}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, live := step.State.Record(id)
			if !live || got.Phase != c.want || len(r.Unasked) > 0 {
				t.Errorf("the gang is %q (live: %t), unasked are %+v; want it %s", got.Phase, live, r.Unasked, c.want)
			}
			if c.want == workload.Evicting && (got.Reason == nil || !strings.Contains(got.Reason.Message, restoredBy)) {
				t.Errorf("the reason is %+v, want it to name %s", got.Reason, restoredBy)
			}
		})
	}
}
