package e2e

import (
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A gang that runs outlives the booking of its nodes. When the capacity is revoked it is evicted
// with its nodes, and asks for others by the next number.
func TestARunningGangAsksAgainWhenItsCapacityIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(w.ownClass())
	w.asksForNodes(w.ownClass(), `,"retryStrategy":{"backoffBaseSeconds":1}`)
	seen := w.watchRequests()
	id := w.publish("user-queue", "", []byte(stack.RayCluster("booked", 2, 1)))
	first := w.asked(1)
	w.reaches(id, workload.Running)
	w.setPool("--booking", "1s")
	w.refused(first.GetName(), "BookingExpired")
	w.asPlanned(id)
	if record := w.one(id); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("after the booking it is %s in attempt %d", record.Phase, record.Attempt)
	}

	w.setPool("--booking", "0s")
	if err := w.RevokeNodes(w.ctx, first.GetName()); err != nil {
		t.Fatal(err)
	}
	if why := w.reaches(id, workload.Evicting).Reason; why == nil || why.Kind != workload.ReasonNodeLost {
		t.Errorf("it is evicted because of %+v", why)
	}
	second := w.asked(2)
	w.until("it runs again", func() bool {
		record := w.one(id)
		return record.Phase == workload.Running && record.Attempt == 2
	})
	w.asPlanned(id)
	w.consumes(second.GetName(), w.ownClass(), "ray-worker", 2)
	w.cancel(id)
	w.released(id)
	w.nothingAsked()
	if got := seen(); len(got) != 2 {
		t.Errorf("the requests %v were created, want two", got)
	}
}
