package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// The story of the demo: one runs, its like waits with the exact shortage and nothing
// of it exists, one whose GPUs are free in sum but not on one node waits, and the
// end of the first starts the second.
func TestTheStory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("two", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.nodes("one", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	first := w.submit(stack.RayCluster("glue", 1, 2))
	w.reaches(first, workload.Running)
	w.asPlanned(first)

	second := w.submit(stack.RayCluster("glue-again", 1, 2))
	shortage := w.waits(second, workload.ReasonFit).Shortage
	if shortage.PodSet != "workers" || shortage.Resource != "nvidia.com/gpu" || shortage.Asked != 2 || shortage.Largest != 1 || shortage.Sum != 2 {
		t.Errorf("shortage of the second is %+v", shortage)
	}
	w.nothingOf(second)

	spread := w.submit(stack.RayCluster("spread", 2, 2))
	if reason := w.waits(spread, workload.ReasonFit); !strings.Contains(reason.Message, "not on one node") {
		t.Errorf("the reason is %q", reason.Message)
	}
	w.nothingOf(spread)

	w.cancel(first)
	w.reaches(second, workload.Running)
	w.asPlanned(second)
	w.nothingOf(first)
}

func TestRayJobsRunToTheirEndAndFreeTheirPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	good := w.submit(stack.RayJob("good", 1, 1, "succeeded", "1s"))
	bad := w.submit(stack.RayJob("bad", 1, 1, "failed", "1s"))
	w.waits(bad, workload.ReasonFit)
	w.reaches(good, workload.Running)
	w.asPlanned(good)
	w.reaches(good, workload.Succeeded)
	w.released(good)
	w.reaches(bad, workload.Running)
	if reason := w.reaches(bad, workload.Failed).Reason; reason.Kind != workload.ReasonJobEnded {
		t.Errorf("failed because of %+v", reason)
	}
	w.released(bad)
}

// A job that is submitted again under its name when it has ended takes the place of the
// finished object, which is kept to be read until then.
func TestAFinishedJobMakesRoomForTheNextOfItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	var before string
	for _, ends := range []string{"failed", "succeeded"} {
		id := w.submit(stack.RayJob("again", 1, 1, ends, "1s"))
		w.reaches(id, workload.Phase(ends))
		w.released(id)
		kept := w.rayObject("rayjobs", "again", func(u *unstructured.Unstructured) bool { return u.GetLabels()[kube.WorkloadLabel] == string(id) })
		if uid := string(kept.GetUID()); uid == before {
			t.Errorf("the job that ends as %s has the object of the one before", ends)
		} else {
			before = uid
		}
	}
}

func TestCancelInEachPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")

	running := w.submit(stack.RayCluster("running", 1, 1))
	w.reaches(running, workload.Running)
	queued := w.submit(stack.RayCluster("queued", 1, 1))
	w.waits(queued, workload.ReasonFit)
	w.cancel(queued)
	w.reaches(queued, workload.Cancelled)
	w.cancel(running)
	w.reaches(running, workload.Cancelled)
	w.nothingOf(running)

	// Without a dispatcher a gang stays admitted.
	if err := w.StopService("dispatcher"); err != nil {
		t.Fatal(err)
	}
	admitted := w.submit(stack.RayCluster("admitted", 1, 1))
	w.reaches(admitted, workload.Admitted)
	w.cancel(admitted)
	w.reaches(admitted, workload.Cancelling)
	if err := w.StartService(t.Context(), "dispatcher"); err != nil {
		t.Fatal(err)
	}
	w.reaches(admitted, workload.Cancelled)
	w.nothingOf(admitted)

	// Without a watcher a gang stays dispatched.
	if err := w.StopService("capacity-watcher"); err != nil {
		t.Fatal(err)
	}
	dispatched := w.submit(stack.RayCluster("dispatched", 1, 1))
	w.reaches(dispatched, workload.Dispatched)
	w.cancel(dispatched)
	w.reaches(dispatched, workload.Cancelled)
	w.nothingOf(dispatched)
	w.cancel(dispatched) // once more changes nothing
	if err := w.StartService(t.Context(), "capacity-watcher"); err != nil {
		t.Fatal(err)
	}
	job := w.submit(stack.RayJob("job", 1, 1, "succeeded", "1h"))
	w.reaches(job, workload.Running)
	w.cancel(job)
	w.reaches(job, workload.Cancelled)
	w.nothingOf(job)
}

func TestQueuesShareNodesAndKeepToTheirNamespaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		queuemanager.Queue{Name: "red", Namespaces: []string{"e2e-red"}},
		queuemanager.Queue{Name: "blue", Namespaces: []string{"e2e-blue"}, Strategy: "StrictFIFO"})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	red := w.publish("red", "", []byte(stack.RayCluster("same-name", 1, 1)))
	blue := w.publish("blue", "", []byte(stack.RayCluster("same-name", 1, 1)))
	for id, namespace := range map[workload.ID]string{red: "e2e-red", blue: "e2e-blue"} {
		if got := w.reaches(id, workload.Running).Namespace; got != namespace {
			t.Errorf("workload %s runs in namespace %q, want %q", id, got, namespace)
		}
	}
	for _, id := range []workload.ID{red, blue} {
		w.cancel(id)
		w.reaches(id, workload.Cancelled)
	}
}

func TestAnObjectDeletedByOthersEndsTheWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	first := w.submit(stack.RayCluster("first", 1, 1))
	w.reaches(first, workload.Running)
	next := w.submit(stack.RayCluster("next", 1, 1))
	w.waits(next, workload.ReasonFit)
	if err := w.rayClusters().Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if reason := w.reaches(first, workload.Cancelled).Reason; reason.Kind != workload.ReasonDeleted {
		t.Errorf("ended because of %+v", reason)
	}
	w.reaches(next, workload.Running)
	w.nothingOf(first)
}

func TestAForeignObjectOfTheSameNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bystander"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}}, NodeName: w.NodeName("gpu", 0),
	}}
	if _, err := w.Kube.CoreV1().Pods(w.Namespace).Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.createByHand("taken")
	id := w.submit(stack.RayCluster("taken", 1, 1))
	if reason := w.reaches(id, workload.Failed).Reason; reason.Kind != workload.ReasonRefused || !strings.Contains(reason.Message, "already exists") {
		t.Errorf("failed because of %+v", reason)
	}
	w.released(id)
	if _, err := w.rayClusters().Get(t.Context(), "taken", metav1.GetOptions{}); err != nil {
		t.Errorf("the foreign RayCluster: %v", err)
	}
}
