package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/rights"
	"muster.dev/muster/test/stack"
)

// What Muster writes for a gang that is created with kubectl and starts at once, beside the
// pods: one patch that releases a Ray object, or the creation and one status of an
// AppWrapper, and one event. No write is a conflict, and no released object is read.
func TestAGangByKubectlCostsTwoWrites(t *testing.T) {
	t.Parallel()
	asked := rights.NewRecorder(t)
	w := startWorld(t, stack.Options{Through: asked.Through})
	w.nodes("gpu", 4, "cpu=64", "memory=256Gi", "nvidia.com/gpu=8")
	const clusters, jobs, wrappers = 3, 2, 2
	for _, name := range []string{"a", "b", "c"} {
		w.kubectl(labelled(stack.RayCluster("cluster-"+name, 1, 1), "muster.dev/queue-name", "default"), "create", "-f", "-")
	}
	for _, name := range []string{"a", "b"} {
		w.kubectl(labelled(stack.RayJob("job-"+name, 1, 1, "succeeded", "10m"), "muster.dev/queue-name", "default"), "create", "-f", "-")
		w.kubectl(stack.AppWrapper(w.Namespace, "wrapper-"+name, stack.RayCluster("wrapped-"+name, 1, 1)), "create", "-f", "-")
	}
	intake := func(verb, group, resource string) rights.Right {
		return rights.Right{Account: "muster-intake", Verb: verb, Group: group, Resource: resource}
	}
	dispatcher := func(verb, resource string) rights.Right {
		return rights.Right{Account: "muster-dispatcher", Verb: verb, Group: "ray.io", Resource: resource}
	}
	writes := func(of rights.Right) (count int) {
		for answer, times := range asked.Answers() {
			if answer.Right == of && answer.Namespace == w.Namespace {
				count += times
			}
		}
		return count
	}
	status, events := intake("patch", "workload.codeflare.dev", "appwrappers/status"), intake("create", "", "events")
	slow := 0 // gangs that did not start at once: each passing state may be marked, with an event
	w.until("all run and are marked", func() bool {
		answer, err := w.Queries.Workloads(w.ctx, query.WorkloadsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		slow = 0
		for _, r := range answer.Workloads {
			if r.Phase == workload.Running {
				running++
			}
			if r.Times.Running.Sub(r.Times.Submitted) > 800*time.Millisecond {
				slow++
			}
		}
		return running == clusters+jobs+wrappers && writes(status) >= wrappers && writes(events) >= clusters+jobs+wrappers
	})
	for what, want := range map[rights.Right][2]int{
		dispatcher("patch", "rayclusters"):                       {clusters, clusters},
		dispatcher("patch", "rayjobs"):                           {jobs, jobs},
		dispatcher("create", "rayclusters"):                      {wrappers, wrappers},
		intake("patch", "ray.io", "rayclusters"):                 {0, slow},
		intake("patch", "ray.io", "rayjobs"):                     {0, slow},
		intake("patch", "workload.codeflare.dev", "appwrappers"): {0, 0}, // the finalizer
		status: {wrappers, wrappers + 3*slow},
		events: {clusters + jobs + wrappers, clusters + jobs + wrappers + slow},
	} {
		got := writes(what)
		t.Logf("%s: %d times", what, got)
		if got < want[0] || got > want[1] {
			t.Errorf("%s: it did so %d times, want %d to %d (%d did not start at once)", what, got, want[0], want[1], slow)
		}
	}
	reads := 0 // wrapped objects are read on purpose: they may be of any kind, of which there is no cache
	for answer, times := range asked.Answers() {
		if answer.Account == "muster-dispatcher" && answer.Verb == "get" && answer.Group == "ray.io" && !strings.HasPrefix(answer.Name, "wrapped-") {
			t.Logf("%s, %s: %d times", answer.Right, answer.Name, times)
			reads += times
		}
	}
	if reads > slow {
		t.Errorf("the dispatcher read released objects %d times, want none (%d did not start at once)", reads, slow)
	}
	w.kubectl("", "delete", "raycluster/cluster-a", "rayjob/job-a", "appwrapper/wrapper-a")
	for answer, times := range asked.Answers() {
		if answer.Code == http.StatusConflict && answer.Namespace == w.Namespace {
			t.Errorf("%s: %d conflicts", answer.Right, times)
		}
	}
}
