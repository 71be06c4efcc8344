package app

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/bustest"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/door"
)

// oneObject is an API server with one held RayCluster.
type oneObject struct {
	door.Cluster
	object *unstructured.Unstructured
}

func (o oneObject) Object(door.Key) *unstructured.Unstructured { return o.object.DeepCopy() }

func (oneObject) Annotate(context.Context, *unstructured.Unstructured, map[string]string) error {
	return nil
}

func (oneObject) Tell(context.Context, *unstructured.Unstructured, bool, string, string) error {
	return nil
}

// TestASubmissionLostWithItsStream: an object is submitted again after all streams were
// deleted, while the connection stands, and before queue-manager took what they had.
func TestASubmissionLostWithItsStream(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	logger := zaptest.NewLogger(t)
	err := query.Handle(t.Context(), b.Conn(), query.WorkloadsSubject, func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		return query.WorkloadsAnswer{Workloads: []workload.Record{}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := door.New(door.Options{Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), Logger: logger}, messages{bus: b, queries: query.NewClient(b.Conn())})
	d.SetCluster(oneObject{object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": map[string]any{
			"namespace": "team", "name": "one", "uid": "u", "labels": map[string]any{"muster.dev/queue-name": "default"},
			"finalizers": []any{"muster.dev/workload"},
		},
		"spec": map[string]any{"suspend": true, "headGroupSpec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "ray", "image": "ray", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}},
		}}}},
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { d.Run(ctx); return nil })
	group.Go(func() error { return resync(ctx, b, d, logger) })
	defer func() { cancel(); _ = group.Wait() }()
	key := door.Key{Namespace: "team", Name: "one"}
	key.Resource.Group, key.Resource.Version, key.Resource.Resource = "ray.io", "v1", "rayclusters"
	d.Look(key)
	awaitSubjects(t, b, bus.WorkloadStream, 1)

	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test", AckWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	delivery := within(t, taken, "the submission again")
	_, payload, err := delivery.Event()
	if again, ok := payload.(*event.WorkloadSubmitted); err != nil || !ok || again.Workload.ID != d.ID("u") {
		t.Errorf("what comes is %+v, %v; want the submission of %s", payload, err, d.ID("u"))
	}
	delivery.Ack()
}
