package engine

import (
	"context"
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
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Prepare implements Store: all is stored.
func (nothingKnown) Prepare(state.Changes, store.Record) (store.Transaction, error) {
	return func(context.Context) ([]store.Outgoing, error) { return nil, nil }, nil
}

// Probe implements Store: nothing is refused.
func (nothingKnown) Probe(context.Context, state.Changes, store.Record, string) ([]store.Refusal, error) {
	return nil, nil
}

// FuzzApply: whatever comes on a subject that queue-manager reads, the term goes on and
// decides, and no node of the cluster is given more than it has.
func FuzzApply(f *testing.F) {
	const id workload.ID = "3f1f7c0e-5e0b-5d0c-9a53-6d7573746572"
	now := time.Unix(1_800_000_000, 0)
	version := event.Version{Session: now.UnixNano(), Seq: 1}
	node := &event.NodeObserved{Version: version, Node: capacity.Node{
		Cluster: "c", Name: "n", Ready: true, Labels: map[string]string{"kubernetes.io/hostname": "n"}, Allocatable: resource.List{"cpu": 8000, "pods": 10},
	}}
	gang := workload.Workload{ID: id, Queue: "q", Name: "gang", Namespace: "ns", Kind: "RayCluster", PodSets: []workload.PodSet{
		{Name: "workers", Role: workload.RoleWorker, Count: 2, Template: workload.Template{Requests: resource.List{"cpu": 4000, "pods": 1}}},
	}}
	for subject, payload := range map[string]event.Payload{
		event.WorkloadSubject("q"):              &event.WorkloadSubmitted{Workload: gang, Manifest: []byte(`{"kind":"RayCluster"}`)},
		event.WorkloadSubject("other"):          &event.WorkloadCancel{Workload: id, Submitter: "nats/b"},
		event.NodeSubject("c", "n"):             node,
		event.NodeSubject("c", "m"):             &event.NodeRemoved{Version: version, Cluster: "c", Node: "m"},
		event.GangSubject("c", id):              &event.GangObserved{Version: version, Cluster: "c", Workload: id, Pods: []event.GangPod{{Name: "p", Attempt: 1, PodSet: "workers", Node: "n", Phase: "Running", Requests: resource.List{"cpu": 1 << 62}}}},
		event.StatusSubject("c", id):            &event.GangStatus{Workload: id, Cluster: "c", Attempt: 1, Session: 1, Created: true, Gone: true, Released: true},
		event.SyncedSubject("c"):                &event.CapacitySynced{Version: version, Cluster: "c"},
		event.WorkloadSubject("q") + ".release": &event.WorkloadRelease{Workload: id},
	} {
		encoded, err := event.Marshal("1", "test", now, "", payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(subject, encoded)
	}
	unreadable := NewMetrics(prometheus.NewRegistry()).unreadable // it takes longer than an input does
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		step := &Step{
			Archive: nothingKnown{}, Logger: zap.NewNop(), Unreadable: unreadable,
			DeadLetter: func(context.Context, bus.Delivery, string) {},
			State: state.New(1, state.Stored{
				MaxEvent: 1 << 20, Queues: []state.Queue{{Name: "q", Namespaces: []string{"ns"}}},
				Nodes:     []state.StoredNode{{Node: node.Node, Version: event.Version{Session: 1}, Present: true}},
				Workloads: []state.StoredWorkload{{Order: 1, Record: workload.Record{Workload: gang, Phase: workload.Queued}}},
			}),
		}
		d := bus.Delivery{Subject: subject, Data: data}
		if strings.HasPrefix(subject, "muster.workload.") {
			d = d.SettledBy(whatever{})
		}
		for _, at := range []time.Time{now, now.Add(time.Minute)} {
			writer := NewWriter(nothingKnown{}, step)
			decision, err := step.Apply(t.Context(), []bus.Delivery{d}, true, at)
			if err != nil {
				t.Fatalf("the term ends: %v", err)
			}
			if decision == nil {
				continue
			}
			used := int64(0)
			for _, r := range decision.Changes.Updated {
				for _, p := range r.Placements {
					if r.Holding && p.Node == "n" && r.Cluster == "c" {
						used += int64(p.Pods) * r.PodSets[0].Template.Requests["cpu"]
					}
				}
			}
			if used > 8000 && !strings.HasPrefix(subject, "muster.capacity.c.") {
				t.Fatalf("%d of 8000 of the node are given away: %+v", used, decision.Changes.Updated)
			}
			if err := writer.Prepare(decision); err != nil {
				t.Fatal(err)
			}
			if err := writer.Write(t.Context(), decision, func([]store.Outgoing) {}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// whatever takes every word on what became of a message.
type whatever struct{}

func (whatever) Ack() error                       { return nil }
func (whatever) NakWithDelay(time.Duration) error { return nil }
func (whatever) TermWithReason(string) error      { return nil }
func (whatever) InProgress() error                { return nil }
