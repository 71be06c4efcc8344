package app_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// TestActivityIsCounted: what a real queue-manager has done is in its steps: submissions,
// admissions, an end, and how many wait after each; places limit what is counted.
func TestActivityIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "q", Namespaces: []string{"a"}}, app.Queue{Name: "other", Namespaces: []string{"a"}})
	w.node("n1", 4)
	begin := time.Now().Add(-time.Minute).Truncate(time.Second)
	first := w.runGang(gangOf("first", "q", 4))
	second, third := w.submit(gangOf("second", "q", 4)), w.submit(gangOf("third", "q", 4))
	w.waits(second, workload.ReasonFit)
	elsewhere := w.submit(gangOf("elsewhere", "other", 4))
	w.waits(elsewhere, workload.ReasonFit)
	w.cancel("q", third)
	w.phase(third, workload.Cancelled)

	sum := func(r query.ActivityRequest) (all query.ActivityStep) {
		t.Helper()
		r.Since, r.StepSeconds = begin, 20
		answer, err := w.queries.Activity(w.ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range answer.Steps {
			if want := begin.Add(time.Duration(i) * 20 * time.Second); !s.At.Equal(want) {
				t.Errorf("step %d begins at %s, want %s", i, s.At, want)
			}
			all.Submitted, all.Admitted, all.Evicted, all.Ended = all.Submitted+s.Submitted, all.Admitted+s.Admitted, all.Evicted+s.Evicted, all.Ended+s.Ended
			all.Waiting = s.Waiting
		}
		if answer.Steps[0].Waiting != 0 {
			t.Errorf("%d waited before anything was submitted", answer.Steps[0].Waiting)
		}
		return all
	}
	for name, c := range map[string]struct {
		request query.ActivityRequest
		want    query.ActivityStep
	}{
		"all":          {query.ActivityRequest{}, query.ActivityStep{Submitted: 4, Admitted: 1, Ended: 1, Waiting: 2}},
		"a queue":      {query.ActivityRequest{Queue: "q"}, query.ActivityStep{Submitted: 3, Admitted: 1, Ended: 1, Waiting: 1}},
		"places":       {query.ActivityRequest{Within: []query.Place{{Queue: "other", Namespaces: []string{"a"}}}}, query.ActivityStep{Submitted: 1, Waiting: 1}},
		"other places": {query.ActivityRequest{Within: []query.Place{{Queue: "other", Namespaces: []string{"b"}}}}, query.ActivityStep{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sum(c.request); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	w.cancel("q", first)
	w.command(first, event.Absent, 1)
	w.publish(event.GangSubject(cluster, first), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: first})
	w.status(event.GangStatus{Workload: first, Cluster: cluster, Attempt: 1, Gone: true, Released: true})
	w.phase(first, workload.Cancelled)
	w.command(second, event.Present, 1)
	if got, want := sum(query.ActivityRequest{Queue: "q"}), (query.ActivityStep{Submitted: 3, Admitted: 2, Ended: 2}); got != want {
		t.Errorf("after the end of the first: %+v, want %+v", got, want)
	}
}

func TestBadQuestionsAboutActivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "q", Namespaces: []string{"a"}})
	now := time.Now()
	for name, c := range map[string]struct {
		request query.ActivityRequest
		want    string
	}{
		"no begin":       {query.ActivityRequest{StepSeconds: 60}, "want a time before now"},
		"too long":       {query.ActivityRequest{Since: now.AddDate(0, 0, -8), StepSeconds: 86400}, "at most 7 days"},
		"too short":      {query.ActivityRequest{Since: now.Add(-time.Minute), StepSeconds: 1}, "want 10 to"},
		"too many steps": {query.ActivityRequest{Since: now.Add(-24 * time.Hour), StepSeconds: 60}, "at most 400 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := w.queries.Activity(w.ctx, c.request); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestDecisionsAreShown: the record of an admission has the event on which it was decided and
// what became of the workload, and pages lead back to the first decision.
func TestDecisionsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "q", Namespaces: []string{"a"}})
	w.node("n1", 4)
	id := w.runGang(gangOf("first", "q", 4))
	var all []query.Decision
	request := query.DecisionsRequest{Limit: 2}
	for {
		answer, err := w.queries.Decisions(w.ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer.Decisions...)
		if request.Before = answer.Next; answer.Next == nil {
			break
		}
	}
	for i, d := range all {
		if i > 0 && (d.Number >= all[i-1].Number || d.At.After(all[i-1].At)) {
			t.Errorf("decision %s of %s comes after %s of %s", d.DecisionKey, d.At, all[i-1].DecisionKey, all[i-1].At)
		}
	}
	if len(all) < 3 || all[len(all)-1].Number != 0 {
		t.Fatalf("%d decisions, the last is %+v", len(all), all)
	}
	admitted := slices.IndexFunc(all, func(d query.Decision) bool {
		return slices.ContainsFunc(d.Steps, func(s query.DecisionStep) bool {
			return s.Workload == id && s.Phase == workload.Admitted && s.Cluster == cluster
		})
	})
	if admitted < 0 {
		t.Fatalf("no decision has the admission: %+v", all)
	}
	came := slices.ContainsFunc(all[admitted:], func(d query.Decision) bool {
		return slices.ContainsFunc(d.Inputs, func(in query.DecisionInput) bool { return strings.Contains(in.Message, "submitted") })
	})
	if !came {
		t.Errorf("no decision up to the admission has the submission among its inputs: %+v", all[admitted:])
	}
	early, err := w.queries.Decisions(w.ctx, query.DecisionsRequest{Until: all[admitted].At.Add(-time.Microsecond)})
	if err != nil || slices.ContainsFunc(early.Decisions, func(d query.Decision) bool { return d.Number >= all[admitted].Number }) {
		t.Errorf("before the admission there are %+v, %v", early.Decisions, err)
	}
}
