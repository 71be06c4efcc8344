package app_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

const holdOfResearch = `apiVersion: muster.dev/v1beta1
kind: QueueHold
metadata: {name: research}
spec: {since: "2026-11-21T12:00:00Z", by: ann@ops, why: new driver}
`

// While an operator holds a queue, nothing of it is admitted, what runs goes on, and
// every answer says since when, by whom and why, also under the next leader. Other queues
// are not held.
func TestAnOperatorHoldsAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default", "lab"}}, app.Queue{Name: "other", Namespaces: []string{"default"}})
	w.node("a", 4)
	running := w.submit(gangOf("running", "research", 1))
	w.started(running, 1)
	w.apply(holdOfResearch)
	const message = `queue "research" is held since 2026-11-21T12:00:00Z by ann@ops: new driver`
	waiting := w.submit(gangOf("waiting", "research", 1))
	if got := w.waits(waiting, workload.ReasonHeld).Reason.Message; got != message {
		t.Errorf("it waits because %q, want %q", got, message)
	}
	elsewhere := gangOf("elsewhere", "research", 1)
	elsewhere.Namespace = "lab"
	w.waits(w.submit(elsewhere), workload.ReasonHeld)
	w.command(w.submit(gangOf("of-another-queue", "other", 1)), event.Present, 1)
	w.checkHeld(waiting, message)
	w.stop()
	w.start() // another leader
	w.checkHeld(waiting, message)
	if answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: running}); err != nil || answer.Workloads[0].Phase != workload.Running {
		t.Errorf("the gang that ran is %+v, %v", answer.Workloads, err)
	}
	w.configure(query.ConfigureRequest{Delete: []kueue.Key{{Kind: kueue.QueueHold, Name: "research"}}})
	w.command(waiting, event.Present, 1)
	if a := w.awaitStatus("nothing is held", func(a query.StatusAnswer) bool { return len(a.Held) == 0 }); a.Postgres.Silent != "" {
		t.Errorf("Postgres: %+v", a.Postgres)
	}
}

// TestAnExplanationIsOfOneTime: what would admit a gang is looked for with the hold that its
// reason has, however short ago that was set or taken back.
func TestAnExplanationIsOfOneTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}})
	w.node("a", 1)
	w.command(w.submit(gangOf("running", "research", 1)), event.Present, 1)
	waiting := w.submit(gangOf("waiting", "research", 1))
	w.waits(waiting, workload.ReasonFit)
	for _, held := range []bool{false, true, false} {
		w.publish(event.WorkloadSubject("research"), &event.WorkloadHold{Workload: waiting, Resume: !held, By: "ann@ops"})
		w.awaitRecord(waiting, func(r workload.Record) bool { return (r.Hold != nil) == held })
		explained, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: waiting})
		if err != nil {
			t.Fatal(err)
		}
		if is := explained.Reason.Kind == workload.ReasonHeld; is != held {
			t.Errorf("held %v: the reason is %+v", held, explained.Reason)
		}
		if admits := len(explained.Changes) > 0; admits == held {
			t.Errorf("held %v: it would be admitted with %+v", held, explained.Changes)
		}
	}
}

// awaitRecord waits until a workload is as wanted.
func (w *world) awaitRecord(id workload.ID, wanted func(workload.Record) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !wanted(w.recordOf(id)); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("workload %s is %+v", id, w.recordOf(id))
		}
	}
}

// checkHeld looks for the hold in all answers.
func (w *world) checkHeld(waiting workload.ID, message string) {
	w.t.Helper()
	queues, err := w.queries.Queues(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, q := range queues.Queues {
		if held := q.Hold != nil && q.Hold.By == "ann@ops"; held != (q.Name == "research") {
			w.t.Errorf("queue %s has the hold %+v", q.Name, q.Hold)
		}
	}
	w.awaitStatus("the hold is listed", func(a query.StatusAnswer) bool { return len(a.Held) == 1 && a.Held[0] == message })
	explained, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: waiting})
	if err != nil || explained.Reason.Message != message {
		w.t.Errorf("explained by %+v, %v", explained.Reason, err)
	}
	resumes := false
	for _, c := range explained.Changes {
		resumes = resumes || c.Kind == workload.ChangeResume
	}
	if !resumes {
		w.t.Errorf("no change resumes the queue: %+v", explained.Changes)
	}
	w.metric("muster_queues_held", 1)
}

// A hold is refused when it does not say who and since when, and from a cluster.
func TestAHoldIsOfAnOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refused(query.ConfigureRequest{Apply: manifests(t, strings.Replace(holdOfResearch, ", by: ann@ops", "", 1))}, `QueueHold "research"`, "spec.by", "is missing")
	w.refused(query.ConfigureRequest{Apply: manifests(t, strings.Replace(holdOfResearch, "new driver", `"a\nb"`, 1))}, "spec.why", "one line")
	_, err := w.queries.Configure(w.ctx, cluster, query.ConfigureRequest{Apply: manifests(t, holdOfResearch)})
	if err == nil || !strings.Contains(err.Error(), "only operators hold queues") {
		t.Errorf("from a cluster: %v, want a refusal", err)
	}
}

// metric waits until a gauge without labels has a value.
func (w *world) metric(name string, want float64) {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		families, err := w.runtime.Metrics.Gather()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == name && family.GetMetric()[0].GetGauge().GetValue() == want {
				return
			}
		}
		select {
		case <-deadline:
			w.t.Fatalf("the metric %s is not %v within %s", name, want, patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// An intake holds and resumes queues for operators, and can change nothing else that way.
func TestAHoldComesFromIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	if _, err := w.queries.Hold(w.ctx, query.HoldRequest{Queue: "default", By: "http/olga", Why: "new driver"}); err != nil {
		t.Fatal(err)
	}
	waiting := w.submit(gangOf("waiting", "default", 1))
	if got := w.waits(waiting, workload.ReasonHeld).Reason.Message; !strings.Contains(got, "by http/olga: new driver") {
		t.Errorf("it waits because %q", got)
	}
	if _, err := w.queries.Hold(w.ctx, query.HoldRequest{Queue: "default", Resume: true}); err != nil {
		t.Fatal(err)
	}
	w.command(waiting, event.Present, 1)
}
