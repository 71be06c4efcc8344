package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/recorder"
	"muster.dev/muster/test/stack"
)

// A report of usage agrees with a bystander that sums the pods of the cluster: they were on
// their nodes for at least as long as the gangs ran, and for no longer than their places were
// reserved. The bystander sees a pod's end a little later than the watcher at times.
func TestUsageAgreesWithThePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	watcher, err := recorder.Start(w.ctx, w.Kube)
	if err != nil {
		t.Fatal(err)
	}
	w.nodes("gpu", 2, "cpu=16", "memory=64Gi", "nvidia.com/gpu=2")
	begin := time.Now()
	glue := w.submit(stack.RayCluster("glue", 2, 1))
	w.reaches(glue, workload.Running)
	job := w.submit(stack.RayJob("job", 2, 1, "succeeded", "3s"))
	w.reaches(job, workload.Succeeded)
	w.released(job)
	again := w.submit(stack.RayCluster("again", 1, 2))
	w.cancel(glue)
	w.released(glue)
	w.reaches(again, workload.Running)
	requeue, err := event.New(event.NewID(), "e2e", time.Now(), &event.WorkloadRequeue{Workload: again, By: "the test", Why: "it asks for it"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Bus.Publish(w.ctx, event.WorkloadSubject("default"), requeue); err != nil {
		t.Fatal(err)
	}
	await(w, "the second attempt runs", func(e *event.WorkloadChanged) bool {
		return e.ID == again && e.Phase == workload.Running && e.Attempt == 2
	})
	w.cancel(again)
	w.released(again)

	ids := []workload.ID{glue, job, again}
	w.untilPods("no pod of them runs", func() bool {
		for _, id := range ids {
			for _, pod := range w.pods(id) { // the submitter pod of the job stays, ended
				if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
					return false
				}
			}
		}
		return true
	})
	report, err := w.Queries.Usage(w.ctx, query.UsageRequest{Since: begin})
	if err != nil || len(report.Rows) != 1 {
		t.Fatalf("report %+v, %v", report, err)
	}
	if got := report.Rows[0].Admissions; got != 4 {
		t.Errorf("%d admissions, want 4 of 3 workloads", got)
	}
	used := watcher.Report().Used
	compared := 0
	for _, u := range report.Rows[0].Resources {
		if u.Resource != "nvidia.com/gpu" && u.Resource != "cpu" {
			continue
		}
		seen := 0.0
		for _, id := range ids {
			for name, amount := range used[string(id)] {
				if string(name) == string(u.Resource) {
					seen += amount
				}
			}
		}
		compared++
		t.Logf("%s: %.2f reserved, %.2f running, %.2f on nodes", u.Resource, u.Reserved, u.Running, seen)
		const late = 0.05 // of a sum, see above
		if seen <= 0 || u.Running > seen*(1+late) || seen > u.Reserved*(1+late) {
			t.Errorf("%s: pods were on nodes for %v seconds; the report has %v running and %v reserved", u.Resource, seen, u.Running, u.Reserved)
		}
		if u.Resource == "nvidia.com/gpu" && !(u.Lost > 0) {
			t.Error("nothing is lost by the eviction")
		}
	}
	if compared != 2 {
		t.Errorf("compared %d resources, want 2: %+v", compared, report.Rows[0].Resources)
	}
}
