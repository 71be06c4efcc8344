package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/bustest"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/test/stack"
)

var rayJobResource = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayjobs"}

// KubeRay's own retries stay within the reservation, although the pods of two
// attempts overlap, and are one attempt to Muster.
func TestRetriesOfKubeRayStayWithinTheReservation(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=3", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.With(stack.RayJob("retried", 1, 1, "failed,succeeded", "1s"), map[string]any{"backoffLimit": 1}))
	w.reaches(id, workload.Succeeded)
	w.released(id)
	if attempt := w.one(id).Attempt; attempt != 1 {
		t.Errorf("it ended in attempt %d", attempt)
	}
	for _, e := range bustest.Heard[*event.WorkloadChanged](w.heard) {
		if e.ID == id && e.Phase == workload.Evicting {
			t.Errorf("it was evicted: %+v", e.Reason)
		}
	}
}

// KubeRay's deadline ends a job as failed, with its reason. KubeRay leaves the
// submitter pod running then; with the time for finished jobs it goes, too.
func TestADeadlineOfKubeRayFailsTheJob(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{KeepFinished: seconds(1), ForceAfter: seconds(1)})
	w.nodes("gpu", 1, "cpu=3", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.With(stack.RayJob("late", 1, 1, "succeeded", "1h"), map[string]any{"activeDeadlineSeconds": 3}))
	w.reaches(id, workload.Running)
	if reason := w.reaches(id, workload.Failed).Reason; reason.Kind != workload.ReasonJobEnded || !strings.Contains(reason.Message, "DeadlineExceeded") {
		t.Errorf("failed because of %+v", reason)
	}
	w.released(id)
}

// The cluster of a finished job is charged as long as it lives: for the job's own
// time to live, and where it has none for the queue's. The job stays to be read.
func TestTheClusterOfAFinishedJobIsChargedUntilItGoes(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{KeepFinished: seconds(4)})
	w.nodes("gpu", 1, "cpu=3", "memory=32Gi", "nvidia.com/gpu=1")
	for name, fields := range map[string]map[string]any{
		"own-ttl": {"ttlSecondsAfterFinished": 2}, "kept": {"shutdownAfterJobFinishes": false},
	} {
		id := w.submit(stack.With(stack.RayJob(name, 1, 1, "succeeded", "1s"), fields))
		next := w.submit(stack.RayCluster("after-"+name, 1, 1))
		ended := w.reaches(id, workload.Succeeded)
		if !ended.Holding {
			t.Errorf("%s: the finished job holds nothing", name)
		}
		admitted := w.reaches(next, workload.Admitted)
		if held := admitted.Times.Admitted.Sub(ended.Times.Finished); held < time.Second {
			t.Errorf("%s: the places were given away after %s", name, held)
		}
		w.released(id)
		job, err := w.Dynamic.Resource(rayJobResource).Namespace(w.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || job.GetDeletionTimestamp() != nil {
			t.Errorf("%s: the job is not there to be read: %v", name, err)
		}
		w.reaches(next, workload.Running)
		w.cancel(next)
		w.reaches(next, workload.Cancelled)
	}
}
