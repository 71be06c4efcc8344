package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap/zaptest"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/kubecontroller"
)

// oneObject is an API server with one suspended RayCluster.
type oneObject struct {
	kubecontroller.Cluster
	object *unstructured.Unstructured
}

func (o oneObject) Object(kubecontroller.Key) *unstructured.Unstructured { return o.object.DeepCopy() }

func (oneObject) Annotate(context.Context, *unstructured.Unstructured, map[string]string) error {
	return nil
}

func (oneObject) RecordEvent(context.Context, *unstructured.Unstructured, bool, string, string) error {
	return nil
}

// TestASubmissionLostWithItsStream: streams are deleted or purged while the connection
// is up, before queue-manager reads a submission. The object is submitted again before
// its periodic repetition.
func TestASubmissionLostWithItsStream(t *testing.T) {
	t.Parallel()
	remove := func(names ...string) func(*testing.T, jetstream.JetStream) {
		return func(t *testing.T, js jetstream.JetStream) {
			for _, name := range names {
				if err := js.DeleteStream(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	purge := func(t *testing.T, js jetstream.JetStream) {
		stream, err := js.Stream(t.Context(), bus.WorkloadStream)
		if err == nil {
			err = stream.Purge(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, lose := range map[string]func(*testing.T, jetstream.JetStream){
		"all": remove(bus.Streams()...), "submissions alone": remove(bus.WorkloadStream), "purged": purge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			submittedAgain(t, lose)
		})
	}
}

// submittedAgain submits an object, loses messages, and expects the object to be
// submitted again.
func submittedAgain(t *testing.T, lose func(*testing.T, jetstream.JetStream)) {
	t.Helper()
	b := bustest.Connect(t)
	logger := zaptest.NewLogger(t)
	err := query.Handle(t.Context(), b.Conn(), query.WorkloadsSubject, func(context.Context, query.WorkloadsRequest) (query.WorkloadsAnswer, error) {
		return query.WorkloadsAnswer{Workloads: []workload.Record{}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := kubecontroller.New(kubecontroller.Options{Cluster: "c", Operator: ray.Shipped(), Budget: budget.New(budget.Default()), RepeatAfter: time.Hour, Logger: logger}, messages{bus: b, queries: query.NewClient(b.Conn())})
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
	look := make(chan time.Time)
	group.Go(func() error { return resync(ctx, b, d, look, logger) })
	defer func() { cancel(); _ = group.Wait() }()
	key := kubecontroller.Key{Namespace: "team", Name: "one"}
	key.Resource.Group, key.Resource.Version, key.Resource.Resource = "ray.io", "v1", "rayclusters"
	d.Enqueue(key)
	awaitSubjects(t, b, bus.WorkloadStream, 1)
	for range 2 { // once the second look is received, the first is done
		look <- time.Now()
	}

	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	lose(t, js)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	look <- time.Now()
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

// TestTheLossOfOneStreamIsSeen: the controller notices if only one of its streams was
// recreated.
func TestTheLossOfOneStreamIsSeen(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	times := streamTimes{}
	look := func(when string, want ...string) {
		t.Helper()
		if again, _ := times.look(t.Context(), b.State); !slices.Equal(again, want) {
			t.Errorf("%s: %q were created again, want %q", when, again, want)
		}
	}
	look("at first")
	for _, stream := range []string{bus.WorkloadStream, bus.EventsStream} {
		if err := js.DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
		look("without " + stream)
		if err := b.EnsureStreams(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("with another "+stream, stream)
		look("once more")
	}
}

// TestAStreamThatDoesNotAnswerIsNotLost: a failed query does not make its stream, or the
// other one, count as lost.
func TestAStreamThatDoesNotAnswerIsNotLost(t *testing.T) {
	t.Parallel()
	made := map[string]time.Time{bus.WorkloadStream: time.Unix(2000, 0), bus.EventsStream: time.Unix(1000, 0)}
	failing := ""
	state := func(_ context.Context, stream string) (bus.StreamState, error) {
		if stream == failing {
			return bus.StreamState{}, context.DeadlineExceeded
		}
		return bus.StreamState{Created: made[stream]}, nil
	}
	times := streamTimes{}
	for _, failing = range []string{"", bus.WorkloadStream, "", bus.EventsStream, ""} {
		if again, _ := times.look(t.Context(), state); len(again) != 0 {
			t.Errorf("while %q does not answer, %q were created again", failing, again)
		}
	}
	failing, made[bus.WorkloadStream] = bus.EventsStream, time.Unix(3000, 0)
	if again, _ := times.look(t.Context(), state); !slices.Equal(again, []string{bus.WorkloadStream}) {
		t.Errorf("%q were created again, want the one that was", again)
	}
}
