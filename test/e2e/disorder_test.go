package e2e

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// What intake, the watcher and the dispatcher published comes again, and in another
// order; nothing comes twice and nothing changes.
func TestRedeliveredAndReorderedMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	manifest := stack.RayCluster("gang", 1, 1)
	id := w.publish("default", "same", []byte(manifest))
	w.reaches(id, workload.Running)
	for range 3 {
		w.publish("default", "same", []byte(manifest)) // under new message ids
	}
	var deliveries []bus.Delivery
	for stream, filter := range map[string]string{
		bus.CapacityStream: event.CapacityFilter(w.Pool), bus.StatusStream: event.ClusterStatusFilter(w.Pool),
		bus.DispatchStream: event.DispatchFilter(w.Pool),
	} {
		values, err := w.Bus.LastValues(t.Context(), stream, filter)
		if err != nil {
			t.Fatal(err)
		}
		deliveries = append(deliveries, values...)
	}
	if len(deliveries) < 4 {
		t.Fatalf("only %d messages to repeat", len(deliveries))
	}
	for i := range deliveries {
		d := deliveries[len(deliveries)-1-i]
		published, err := w.Bus.PublishEncoded(d.Subject, fmt.Sprintf("again-%d", i), d.Data, 0)
		if err == nil {
			err = published.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	after := w.submit(stack.RayCluster("after", 1, 1))
	w.reaches(after, workload.Running)
	if record := w.one(id); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("the repetition changed the workload: %s, attempt %d", record.Phase, record.Attempt)
	}
	if objects := fmt.Sprint(w.objects(id)); objects != "[rayclusters/gang]" {
		t.Errorf("of the workload there are %s", objects)
	}
	w.asPlanned(id)
}

// A cancellation that overtakes its submission still ends it.
func TestACancellationThatOvertakesItsSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	early := event.WorkloadID(w.Pool, "late-submission")
	w.cancel(early)
	// Let queue-manager see it first: it answers questions in between.
	w.until("queue-manager has read the cancellation", func() bool { return w.redelivered(bus.WorkloadStream) > 0 })
	w.publish("default", "late-submission", []byte(stack.RayCluster("gang", 1, 1)))
	w.reaches(early, workload.Cancelled)
	w.nothingOf(early)
}

// A command of a leader that has been replaced is refused.
func TestAStaleCommandIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.RayCluster("gang", 1, 1))
	w.reaches(id, workload.Running)
	stale, err := event.New(event.NewID(), "test", time.Now(), &event.GangCommand{
		Workload: id, Cluster: w.Pool, Attempt: 1, Epoch: 0, State: event.Absent,
		Kind: "RayCluster", Namespace: w.Namespace, Name: "gang",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Bus.Publish(t.Context(), event.DispatchSubject(w.Pool, id), stale); err != nil {
		t.Fatal(err)
	}
	// The next command is executed after the stale one has been looked at.
	other := w.submit(stack.RayCluster("other", 0, 0))
	w.reaches(other, workload.Running)
	if record := w.one(id); record.Phase != workload.Running {
		t.Errorf("a stale command made the workload %s", record.Phase)
	}
	w.asPlanned(id)
}
