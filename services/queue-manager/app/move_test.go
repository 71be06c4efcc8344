package app_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// A moved workload waits in the other queue, also under the next leader, and its history
// says who moved it.
func TestAMovedWorkloadStaysMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "from", Namespaces: []string{"default"}}, app.Queue{Name: "to", Namespaces: []string{"default"}})
	w.node("a", 1)
	first := w.submit(gangOf("first", "to", 1))
	w.command(first, event.Present, 1)
	id := w.submit(gangOf("moved", "from", 1))
	w.waits(id, workload.ReasonFit)
	w.publish(event.WorkloadSubject("from"), &event.WorkloadMove{Workload: id, Queue: "to", By: "ann@ops", Why: "Friday"})
	w.nodes("it is moved", func([]query.Node) bool { return w.queueOf(id) == "to" })
	w.stop()
	w.start() // another leader
	if got := w.queueOf(id); got != "to" {
		t.Errorf("the next leader has it in queue %q", got)
	}
	w.cancel("to", first)
	w.command(first, event.Absent, 1)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Gone: true, Released: true})
	w.command(id, event.Present, 1)
	history, err := w.queries.History(w.ctx, query.HistoryRequest{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range history.Entries {
		found = found || e.Reason != nil && strings.Contains(e.Reason.Message, `ann@ops moved it from queue "from" to queue "to": Friday`)
	}
	if !found {
		t.Errorf("the history does not say who moved it: %+v", history.Entries)
	}
}

// queueOf asks in which queue a workload is.
func (w *world) queueOf(id workload.ID) string {
	w.t.Helper()
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: id})
	if err != nil || len(answer.Workloads) != 1 {
		return ""
	}
	return answer.Workloads[0].Queue
}
