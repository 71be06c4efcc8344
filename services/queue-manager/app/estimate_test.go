package app_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// estimate waits until the answer about a waiting workload has an estimate that is wanted.
// Nothing tells when one is made.
func (w *world) estimate(id workload.ID, what string, wanted func(*workload.Estimate) bool) *workload.Estimate {
	w.t.Helper()
	deadline := time.After(3 * patience)
	for {
		answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: id})
		if err == nil && len(answer.Workloads) == 1 && answer.Workloads[0].Estimate() != nil && wanted(answer.Workloads[0].Estimate()) {
			return answer.Workloads[0].Estimate()
		}
		select {
		case <-deadline:
			w.t.Fatalf("not within %s: %s has an estimate %s; workloads: %s", 3*patience, id, what, w.dump())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func estimatingWorld(t *testing.T) *world {
	return newWorldWith(t, func(c *app.Config) {
		c.EstimateInterval = time.Second
		c.Queues = []app.Queue{{Name: "q", Namespaces: []string{"a"}}}
	})
}

// runGang has a gang admitted and its pods running.
func (w *world) runGang(gang workload.Workload) workload.ID {
	w.t.Helper()
	id := w.submit(gang)
	w.pods(w.command(id, event.Present, 1))
	w.phase(id, workload.Running)
	return id
}

// TestWaitingWorkloadsHaveAnEstimate: a gang behind one that declares its run time has the
// times at which that ends; when it has started, the estimate is scored in the metrics and
// gone from the answers.
func TestWaitingWorkloadsHaveAnEstimate(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	first, second := gangOf("first", "q", 4), gangOf("second", "q", 4)
	first.Life.RunTime = workload.Duration(time.Hour)
	began := time.Now()
	running, waiting := w.runGang(first), w.submit(second)
	w.waits(waiting, workload.ReasonFit)
	got := w.estimate(waiting, "of an hour", func(e *workload.Estimate) bool { return !e.P50.IsZero() })
	if got.P50.Before(began.Add(time.Hour-time.Second)) || got.P50.After(time.Now().Add(time.Hour)) || got.P90.Before(got.P50) || got.MadeAt.Before(began) {
		t.Errorf("the estimate is %+v, want an hour, to the second, from about %s", got, began)
	}
	w.cancel("q", running)
	w.status(event.GangStatus{Workload: running, Attempt: 1, Gone: true, Released: true})
	w.publish(event.GangSubject(cluster, running), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: running})
	w.phase(waiting, workload.Admitted)
	w.scored("q", "0.9", 1)
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: waiting})
	if err != nil || answer.Workloads[0].Estimate() != nil {
		t.Errorf("a workload that has started has the estimate %+v, %v", answer.Workloads[0].Estimate(), err)
	}
	w.keepsItsEstimates(waiting)
}

// keepsItsEstimates: what was estimated of a workload that has started, and what came of it, is
// known to the next process, too.
func (w *world) keepsItsEstimates(id workload.ID) {
	w.t.Helper()
	w.stop()
	w.start()
	history, err := w.queries.History(w.ctx, query.HistoryRequest{ID: id})
	if err != nil || len(history.Estimates) == 0 {
		w.t.Fatalf("the history has the estimates %+v, %v; want one", history.Estimates, err)
	}
	first := history.Estimates[0]
	if started := first.StartAfter(history.Entries); first.P50.IsZero() || !started.After(first.MadeAt) || started.After(first.P50) {
		w.t.Errorf("the first estimate is %+v, and the start %s; want it before the p50", first, started)
	}
	w.submit(gangOf("third", "q", 4)) // a forecast is made when something waits
	deadline := time.After(3 * patience)
	for {
		answer, err := w.queries.Queues(w.ctx)
		if err == nil && len(answer.Queues) == 1 && answer.Queues[0].Estimates != nil {
			if got := answer.Queues[0].Estimates; got.Started != 1 || got.P90Coverage != 1 {
				w.t.Errorf("of the estimates of the queue came %+v, want one start by the p90", got)
			}
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("the next process knows no score within %s: %v", 3*patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// scored waits until the metrics have a coverage of a queue.
func (w *world) scored(queue, quantile string, want float64) {
	w.t.Helper()
	deadline := time.After(3 * patience)
	for {
		families, err := w.runtime.Metrics.Gather()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if family.GetName() == "muster_estimate_coverage_ratio" && labels["queue"] == queue && labels["quantile"] == quantile {
					if got := m.GetGauge().GetValue(); got != want {
						w.t.Errorf("the coverage of quantile %s is %g, want %g", quantile, got, want)
					}
					return
				}
			}
		}
		select {
		case <-deadline:
			w.t.Fatalf("no estimate of queue %s was scored within %s", queue, 3*patience)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestAGangBehindOneWithoutAnEndHasNoEstimate: it says behind which.
func TestAGangBehindOneWithoutAnEndHasNoEstimate(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	w.runGang(gangOf("endless", "q", 4))
	waiting := w.submit(gangOf("second", "q", 4))
	got := w.estimate(waiting, "without a time", func(e *workload.Estimate) bool { return e.Unknown != "" })
	if !got.P50.IsZero() || len(got.Behind) != 1 || got.Behind[0] != "a/endless" {
		t.Errorf("the estimate is %+v, want none, behind a/endless", got)
	}
	if seen := got.ForTenant(); seen.Behind != nil || seen.Unknown != "a workload holds places, and its end is unknown" {
		t.Errorf("a tenant sees %+v", seen)
	}
}

// TestEstimatesLearnFromWhatHasEnded: after two jobs of a kind have ended, also under an
// earlier process, the next one's time is known without a declaration.
func TestEstimatesLearnFromWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := estimatingWorld(t)
	w.node("n1", 4)
	for _, name := range []string{"train-1", "train-2"} {
		id := w.runGang(gangOf(name, "q", 4))
		w.status(event.GangStatus{Workload: id, Attempt: 1, Outcome: event.OutcomeSucceeded})
		w.phase(id, workload.Succeeded)
		w.status(event.GangStatus{Workload: id, Attempt: 1, Outcome: event.OutcomeSucceeded, Gone: true, Released: true})
		w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id})
	}
	w.runGang(gangOf("train-3", "q", 4))
	waiting := w.submit(gangOf("train-4", "q", 4))
	w.estimate(waiting, "of a time", func(e *workload.Estimate) bool { return !e.P50.IsZero() })
	w.stop()
	w.start()
	w.estimate(waiting, "of a time", func(e *workload.Estimate) bool { return !e.P50.IsZero() })
}
