package engine

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// oneKept is a stream of submissions with one message, which no event has answered.
type oneKept struct{ bus.Delivery }

func (k oneKept) Since(_ context.Context, _ time.Time, each func(bus.Delivery) error) error {
	return each(k.Delivery)
}

func (oneKept) Answered(context.Context, string, workload.ID) (bool, error) { return false, nil }

// TestWhatWasTakenInAndNotPublishedComesBack: the database was replaced and has lost the commit
// of a submission of which nothing was published yet. Nothing in the streams shows that, but
// the submission is there.
func TestWhatWasTakenInAndNotPublishedComesBack(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0).UTC()
	data, err := event.Marshal("1", "test", now, "", &event.WorkloadSubmitted{
		Manifest: json.RawMessage(`{"kind":"RayCluster"}`),
		Workload: workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "w", PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, replaced := range map[string]bool{"replaced": true, "as it was": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := &Step{
				State:   state.New(1, state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}}}}),
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
			}
			r, err := Recovery{
				Step: step, Submissions: oneKept{bus.Delivery{Subject: event.KeptSubject("q"), Data: data, Stored: now, Sequence: 1}}, Now: now,
				Save: func([]bus.Delivery) error { return nil }, MayBeOlder: replaced,
			}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if step.State.Has(id) != replaced || slices.Equal(r.Unanswered, []workload.ID{id}) != replaced || len(r.Requeued) > 0 {
				t.Errorf("it is queued: %v; found %+v", step.State.Has(id), r)
			}
		})
	}
}

// nothingKept is a stream of submissions without a message.
type nothingKept struct{ SubmissionLog }

func (nothingKept) Since(context.Context, time.Time, func(bus.Delivery) error) error { return nil }

// TestTheStateKnowsThatItMayBeOlder: the database was replaced, the streams have nothing more
// and no workload has checks. The state has to know it, because the numbers of requests in the
// lost time must not be used again.
func TestTheStateKnowsThatItMayBeOlder(t *testing.T) {
	t.Parallel()
	for name, replaced := range map[string]bool{"replaced": true, "as it was": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := &Step{
				State:   state.New(1, state.Stored{MaxEvent: 1 << 20}),
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
			}
			saved := 0
			recovery := Recovery{
				Step: step, Submissions: nothingKept{}, Now: time.Unix(1_800_000_000, 0),
				Save: func([]bus.Delivery) error { saved++; return nil }, MayBeOlder: replaced,
			}
			if _, err := recovery.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, recorded := step.decisions.Flush()
			inputs, err := decisionlog.Inputs(recorded)
			if err != nil {
				t.Fatal(err)
			}
			ahead := 0
			for _, input := range inputs {
				if input.Kind == decisionlog.Ahead && input.Ahead != nil {
					ahead++
				}
			}
			if (ahead == 1) != replaced || (saved > 0) != replaced {
				t.Errorf("the state was told %d times that it may be older, in %d commits", ahead, saved)
			}
		})
	}
}
