package e2e

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// Each service is stopped while gangs are under way and started again; nothing
// is lost, doubled or left over.
func TestRestartOfEachServiceInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, service := range stack.Services() {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nodes("gpu", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
			before := w.submit(stack.RayCluster("before", 2, 1))
			w.reaches(before, workload.Running)
			leaving := w.submit(stack.RayCluster("leaving", 2, 1))
			waiting := w.submit(stack.RayCluster("waiting", 2, 2))

			if err := w.StopService(service); err != nil {
				t.Fatal(err)
			}
			during := w.submit(stack.RayJob("during", 1, 2, "succeeded", "1s"))
			w.cancel(leaving)
			if err := w.StartService(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			w.reaches(leaving, workload.Cancelled)
			w.released(leaving)
			w.reaches(during, workload.Succeeded)
			w.released(during)
			w.cancel(before)
			w.reaches(waiting, workload.Running)
			w.asPlanned(waiting)
			w.nothingOf(before)
			w.nothingOf(leaving)
			if objects := fmt.Sprint(w.objects(waiting)); objects != "[rayclusters/waiting]" {
				t.Errorf("of the waiting gang there are %s", objects)
			}
		})
	}
}
