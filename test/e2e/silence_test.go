package e2e

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
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

// A dispatcher that is away is named by the status, and by the reasons of what waits for it,
// and nothing else is. The accusation ends when it is back.
func TestTheStatusNamesASilentDispatcher(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(3)}})
	w.nodes("gpu", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	if err := w.StopService(stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.RayCluster("uncreated", 2, 1))
	await(w, "the reason that names the dispatcher", func(c *event.WorkloadChanged) bool {
		return c.ID == id && c.Reason != nil && strings.Contains(c.Reason.Message, "the dispatcher of cluster")
	})
	named := func() (lines []string) {
		answer, err := w.Queries.Status(t.Context())
		if err != nil {
			return []string{err.Error()}
		}
		return answer.Attention
	}
	w.until("the status names the dispatcher alone", func() bool {
		lines := named()
		return len(lines) == 1 && strings.Contains(lines[0], "the dispatcher of cluster") && strings.Contains(lines[0], "1 workload waits for it")
	})
	history, err := w.Queries.History(t.Context(), query.HistoryRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range history.Entries {
		if entry.Reason != nil && strings.Contains(entry.Reason.Message, "capacity-watcher") {
			t.Errorf("the history accuses the watcher: %s", entry.Reason.Message)
		}
	}
	if err := w.StartService(t.Context(), stack.Dispatcher); err != nil {
		t.Fatal(err)
	}
	w.until("nothing is silent any more", func() bool { return len(named()) == 0 })
}
