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
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// oneKept is a stream of submissions with one message, which no event has answered.
type oneKept struct{ bus.Delivery }

func (k oneKept) Since(_ context.Context, _ time.Time, each func(bus.Delivery) error) error {
	return each(k.Delivery)
}

func (oneKept) LastEvent(context.Context, string, workload.ID) (*bus.Delivery, error) {
	return nil, nil
}

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

// kept is a stream of submissions that events have answered.
type kept []bus.Delivery

func (k kept) Since(_ context.Context, from time.Time, each func(bus.Delivery) error) error {
	for _, d := range k {
		if d.Stored.Before(from) {
			continue
		}
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
}

func (kept) LastEvent(context.Context, string, workload.ID) (*bus.Delivery, error) {
	return &bus.Delivery{}, nil
}

// TestWhatNATSStoredByAnotherClockIsRequeued: the clock of NATS is behind that of Postgres, so
// the submission of a lost workload seems to be older than the ledger.
func TestWhatNATSStoredByAnotherClockIsRequeued(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746573"
	now := time.Unix(1_800_000_000, 0).UTC()
	w := workload.Workload{ID: id, Queue: "q", Namespace: "n", Kind: workload.KindRayCluster, Name: "w", PodSets: []workload.PodSet{
		{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1, "pods": 1}}},
	}}
	message := func(name string, p event.Payload, stored time.Time) bus.Delivery {
		data, err := event.Marshal(name, "test", now, "", p)
		if err != nil {
			t.Fatal(err)
		}
		return bus.Delivery{Subject: event.KeptSubject("q"), Data: data, Stored: stored, Sequence: 1}
	}
	submitted := &event.WorkloadSubmitted{Manifest: json.RawMessage(`{"kind":"RayCluster"}`), Workload: w}
	last := relay.LastEvent{Record: workload.Record{Workload: w, Phase: workload.Queued, Attempt: 1}}
	command := &event.GangCommand{
		Workload: id, Cluster: "c", Attempt: 1, State: event.Present, Queue: "q", Kind: w.Kind, Namespace: w.Namespace, Name: w.Name,
	}
	for name, c := range map[string]struct {
		found  relay.Found
		behind time.Duration
	}{
		"an event, by the same clock":   {relay.Found{LastEvents: []relay.LastEvent{last}}, 0},
		"an event, an hour behind":      {relay.Found{LastEvents: []relay.LastEvent{last}}, time.Hour},
		"a command, an hour behind":     {relay.Found{Commands: []*event.GangCommand{command}}, time.Hour},
		"an event, far behind Postgres": {relay.Found{LastEvents: []relay.LastEvent{last}}, 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := &Step{
				State:   state.New(1, state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"n"}}}}),
				Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
			}
			other := *submitted
			other.Workload.ID, other.Workload.Name = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746574", "other" // ended, or refused
			r, err := Recovery{
				Step: step, Found: c.found, LastCommit: now, Now: now, Save: func([]bus.Delivery) error { return nil },
				Submissions: kept{message("1", submitted, now.Add(-c.behind)), message("2", &other, now.Add(-c.behind))},
			}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !step.State.Has(id) || !slices.Equal(r.Requeued, []workload.ID{id}) || len(r.Lost) > 0 {
				t.Errorf("requeued are %q, lost %+v; want %s queued again, and nothing lost", r.Requeued, r.Lost, id)
			}
			if step.State.Has(other.Workload.ID) {
				t.Error("a workload is queued again of which nothing shows that it was accepted")
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
