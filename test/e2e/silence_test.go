package e2e

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A capacity-watcher that is away for longer than the ready deadline ends no gang: its pods
// run, and only the news of that is missing.
func TestASilentWatcherEndsNoGang(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(3)}})
	w.nodes("gpu", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	if err := w.StopService(stack.CapacityWatcher); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.RayCluster("unseen", 2, 1))
	silent := await(w, "the reason that names the silent part", func(c *event.WorkloadChanged) bool {
		return c.ID == id && c.Reason != nil && strings.Contains(c.Reason.Message, "the capacity-watcher of cluster")
	})
	if silent.Phase != workload.Dispatched {
		t.Errorf("its phase is %s, want dispatched", silent.Phase)
	}
	if err := w.StartService(t.Context(), stack.CapacityWatcher); err != nil {
		t.Fatal(err)
	}
	if running := w.reaches(id, workload.Running); running.Attempt != 1 {
		t.Errorf("it runs in attempt %d, want 1", running.Attempt)
	}
	w.asPlanned(id)
}
