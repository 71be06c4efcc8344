package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/test/stack"
)

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
		"own-ttl": {"ttlSecondsAfterFinished": 6}, "kept": {"shutdownAfterJobFinishes": false},
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
		job, err := w.Dynamic.Resource(ray.Resource("rayjobs")).Namespace(w.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || job.GetDeletionTimestamp() != nil {
			t.Errorf("%s: the job is not there to be read: %v", name, err)
		}
		w.reaches(next, workload.Running)
		w.cancel(next)
		w.reaches(next, workload.Cancelled)
	}
}

// Where the manifest lets KubeRay take only the workers of a finished job away, their
// places are free when they are gone, and the others are held until the head goes,
// too.
func TestADeletionRuleFreesTheWorkersAlone(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{KeepFinished: workload.Duration(time.Hour)})
	w.nodes("gpu", 1, "cpu=4", "memory=32Gi", "nvidia.com/gpu=1")
	policy := map[string]any{"policy": "DeleteWorkers"}
	id := w.submit(stack.With(stack.RayJob("job", 1, 1, "succeeded", "1s"), map[string]any{
		"shutdownAfterJobFinishes": false, "deletionStrategy": map[string]any{"onSuccess": policy, "onFailure": policy},
	}))
	next := w.submit(stack.RayCluster("next", 1, 1))
	if ended := w.reaches(id, workload.Succeeded); !ended.Holding {
		t.Error("the finished job holds nothing")
	}
	w.reaches(next, workload.Running)
	w.asPlanned(next)
	for _, p := range w.one(id).Placements {
		if p.PodSet == "workers" {
			t.Errorf("of the finished job %v is held", p)
		}
	}
	if head := w.headUID(id); head == "" || !w.one(id).Holding {
		t.Error("the head of the finished job is not charged")
	}
}
