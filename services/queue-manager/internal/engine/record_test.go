package engine

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
)

// The last report of a cluster was stored an hour before the term. Its first decision starts
// nothing there, and a replay of what was recorded decides the same.
func TestASilenceBeforeTheTermIsRecorded(t *testing.T) {
	t.Parallel()
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0).UTC()
	version := event.Version{Session: now.UnixNano(), Seq: 1}
	node := capacity.Node{Cluster: "c", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10}}
	step := &Step{
		Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: NewMetrics(prometheus.NewRegistry()).unreadable,
		State: state.New(1, state.Stored{MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}}}),
	}
	step.State.SetSilentAfter(45 * time.Second)
	step.Begin(1, state.Limits{}, AskFor, now)
	delivery := func(subject string, stored time.Time, payload event.Payload) bus.Delivery {
		encoded, err := event.Marshal("1", "test", now, "", payload)
		if err != nil {
			t.Fatal(err)
		}
		return bus.Delivery{Subject: subject, Data: encoded, Stored: stored}
	}
	batch := []bus.Delivery{
		delivery(event.NodeSubject("c", "n"), now.Add(-time.Hour), &event.NodeObserved{Version: version, Node: node}),
		delivery(event.WorkloadSubject("q"), now, &event.WorkloadSubmitted{Manifest: []byte(`{}`), Workload: workload.Workload{
			ID: id, Queue: "q", Kind: workload.KindRayCluster, Name: "gang", Namespace: "ns", PodSets: []workload.PodSet{
				{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 4, "pods": 1}}},
			},
		}}),
	}
	read, err := step.Apply(t.Context(), batch, false, now)
	if err != nil {
		t.Fatal(err)
	}
	step.Do(decisionlog.Input{Kind: decisionlog.BeginDecisions, At: now})
	first, err := step.Apply(t.Context(), nil, true, now)
	if err != nil || len(first.Changes.Updated) != 1 {
		t.Fatalf("the first decision is %+v, %v", first, err)
	}
	record := first.Changes.Updated[0]
	if record.Phase != workload.Queued || record.Reason == nil || !strings.Contains(record.Reason.Message, `cluster "c" has not reported since `+now.Add(-time.Hour).Format(time.RFC3339)) {
		t.Errorf("the gang is %s because of %+v, want it queued because of the silence", record.Phase, record.Reason)
	}
	inputs, err := decisionlog.Inputs(append(bytes.Clone(read.record.Inputs), first.record.Inputs...))
	if err != nil {
		t.Fatal(err)
	}
	again := inputs[0].Term.State(nil, nil)
	for _, in := range inputs[1:] {
		if in.Kind == decisionlog.BeginDecisions { // after the first commit
			again.Flush()
		}
		if err := decisionlog.Apply(again, in); err != nil {
			t.Fatal(err)
		}
	}
	if d := decisionlog.Compare(decisionlog.Outcome(first.Changes), decisionlog.Outcome(again.Flush())); d != nil {
		t.Errorf("a replay differs: %+v", d)
	}
}
