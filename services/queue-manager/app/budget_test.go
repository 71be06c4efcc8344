package app_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// budgetOf is a budget of queue q.
func budgetOf(hours int64, action string) string {
	return fmt.Sprintf("apiVersion: muster.dev/v1beta1\nkind: Budget\nmetadata: {name: gpus}\nspec: {queue: q, resource: nvidia.com/gpu, hours: %d, period: Month, action: %s}\n", hours, action)
}

// budget waits until the answer about queue q has a budget that is wanted.
func (w *world) budget(what string, wanted func(query.Queue) bool) {
	w.t.Helper()
	deadline := time.After(3 * patience)
	for {
		answer, err := w.queries.Queues(w.ctx)
		if err == nil && len(answer.Queues) == 1 && len(answer.Queues[0].Budgets) == 1 && wanted(answer.Queues[0]) {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s; queues: %+v, %v", 3*patience, what, answer.Queues, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestABudgetHoldsAQueue: what runs goes on, what waits says why, also after a restart; no person
// holds the queue; with a higher budget the queue goes on. A budget that warns holds nothing.
func TestABudgetHoldsAQueue(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *app.Config) {
		c.BudgetInterval = 200 * time.Millisecond
		c.Queues = []app.Queue{{Name: "q", Namespaces: []string{"a"}}}
	})
	w.node("n1", 4_000_000)
	first := gangOf("first", "q", 1)
	first.PodSets[1].Template.Requests["nvidia.com/gpu"] = 3_600_000 // a thousand hours a second
	running := w.runGang(first)
	w.apply(budgetOf(5, quota.BudgetWarns))
	w.budget("the budget is used up, and warns", func(q query.Queue) bool { return q.Budgets[0].UsedUp() && !q.Budgets[0].Holds })
	usedUp := await(w, "an event says so", func(e *event.BudgetUsedUp) bool { return e.Budget == "gpus" })
	if usedUp.Queue != "q" || usedUp.Action != quota.BudgetWarns || usedUp.Used < 5 {
		t.Errorf("the event says %+v", usedUp)
	}
	second := w.runGang(gangOf("second", "q", 1))

	w.apply(budgetOf(5, quota.BudgetHolds))
	w.budget("the budget holds", func(q query.Queue) bool { return q.Budgets[0].Holds && q.Hold == nil })
	waiting := w.submit(gangOf("third", "q", 1))
	w.waits(waiting, workload.ReasonHeld)
	w.stop()
	w.start()
	w.waits(waiting, workload.ReasonHeld)
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range answer.Workloads {
		if (r.ID == running || r.ID == second) && r.Phase != workload.Running {
			t.Errorf("%s is %s, want that it runs on", r.Name, r.Phase)
		}
	}
	w.apply(budgetOf(1_000_000_000, quota.BudgetHolds))
	w.phase(waiting, workload.Admitted)
	w.budget("the budget holds no more", func(q query.Queue) bool { return !q.Budgets[0].Holds })
	if _, err := w.queries.Configure(w.ctx, "", query.ConfigureRequest{Delete: []kueue.Key{{Kind: kueue.Budget, Name: "gpus"}}}); err != nil {
		t.Fatal(err)
	}
}
