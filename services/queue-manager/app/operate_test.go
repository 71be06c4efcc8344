package app_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// recordOf asks for a workload.
func (w *world) recordOf(id workload.ID) workload.Record {
	w.t.Helper()
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: id})
	if err != nil || len(answer.Workloads) != 1 {
		return workload.Record{}
	}
	return answer.Workloads[0]
}

// checkReplay stops the leader, and replays all that it has decided.
func (w *world) checkReplay() {
	w.t.Helper()
	w.stopReplayable()
	if report := w.replay(); report.Difference != nil || report.Decisions == 0 {
		w.t.Errorf("replayed %d decisions: %+v", report.Decisions, report.Difference)
	}
}

// A held workload waits although there is room, also under the next leader, and every
// answer says by whom it is held and why. Others pass it. Resumed, it starts.
func TestAHeldWorkloadStaysHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}})
	held := w.submit(gangOf("held", "research", 1))
	w.waits(held, workload.ReasonNoNodes)
	w.publish(event.WorkloadSubject("research"), &event.WorkloadHold{Workload: held, By: "ann@ops", Why: "new data"})
	w.waits(held, workload.ReasonHeld)
	w.node("a", 2)
	w.command(w.submit(gangOf("passes", "research", 1)), event.Present, 1)
	w.stop()
	w.start() // another leader
	w.command(w.submit(gangOf("passes-too", "research", 1)), event.Present, 1)
	r := w.recordOf(held)
	if r.Phase != workload.Queued || r.Hold == nil || r.Reason == nil || !strings.HasPrefix(r.Reason.Message, "held by an operator: ann@ops, since ") ||
		!strings.HasSuffix(r.Reason.Message, ": new data") {
		t.Errorf("the next leader has it %s with the hold %+v and the reason %+v", r.Phase, r.Hold, r.Reason)
	}
	explained, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: held})
	if err != nil || explained.Reason.Kind != workload.ReasonHeld {
		t.Errorf("explained by %+v, %v", explained.Reason, err)
	}
	w.node("b", 1)
	w.publish(event.WorkloadSubject("research"), &event.WorkloadHold{Workload: held, Resume: true, By: "ann@ops"})
	w.command(held, event.Present, 1)
	w.checkReplay()
}

// A requeued gang is taken down, and waits again behind one whose priority was raised
// meanwhile; both are stored for the next leader, and a replay has the same outcomes.
func TestARequeuedGangWaitsBehindAHigherPriority(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}})
	w.node("a", 1)
	first := w.submit(gangOf("first", "research", 1))
	w.started(first, 1)
	second := w.submit(gangOf("second", "research", 1))
	w.waits(second, workload.ReasonFit)
	w.publish(event.WorkloadSubject("research"), &event.WorkloadPriority{Workload: second, Priority: 500, By: "ann@ops", Why: "Friday"})
	w.nodes("the priority is stored", func([]query.Node) bool { return w.recordOf(second).Priority == 500 })
	w.publish(event.WorkloadSubject("research"), &event.WorkloadRequeue{Workload: first, By: "ann@ops", Why: "it hangs"})
	w.command(first, event.Absent, 1)
	w.stop()
	w.start() // another leader
	if r := w.recordOf(first); r.Phase != workload.Evicting || r.Reason == nil || !strings.HasPrefix(r.Reason.Message, "requeued by ann@ops: it hangs; it loses ") {
		t.Errorf("the next leader has it %s because of %+v", r.Phase, r.Reason)
	}
	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true, Gone: true, Released: true})
	w.command(second, event.Present, 1)
	w.waits(first, workload.ReasonFit)
	w.nodes("the node is as old as its watcher says", func(nodes []query.Node) bool { return nodes[0].Created.Equal(nodeOf("a", 1).Created) })
	if r := w.recordOf(second); r.Priority != 500 {
		t.Errorf("it has the priority %d", r.Priority)
	}
	w.publish(event.WorkloadSubject("research"), &event.WorkloadPriority{Workload: second, Priority: -1, By: "ann@ops"})
	w.nodes("the priority of a running one is stored", func([]query.Node) bool { return w.recordOf(second).Priority == -1 })
	w.checkReplay()
}
