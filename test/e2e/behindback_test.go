package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// oneGang is a world with one node of the given GPUs, on which "gang" runs: a head
// and a worker with a GPU.
func oneGang(t *testing.T, rules workload.Rules, gpus int) (*world, workload.ID) {
	t.Helper()
	w := ruled(t, rules)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", fmt.Sprintf("nvidia.com/gpu=%d", gpus))
	id := w.submit(stack.RayCluster("gang", 1, 1))
	w.reaches(id, workload.Running)
	return w, id
}

// endsAsDeleted waits until a workload has ended because a user deleted its
// object.
func (w *world) endsAsDeleted(id workload.ID) {
	w.t.Helper()
	if reason := w.reaches(id, workload.Cancelled).Reason; reason.Kind != workload.ReasonDeleted {
		w.t.Errorf("ended because of %+v", reason)
	}
}

// A user deletes the object and creates it again with all its labels: that is
// another one. The workload has ended, and the copy, which was not admitted, goes.
func TestARecreatedObjectIsNotOurs(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 2)
	clusters := w.rayClusters()
	object, err := clusters.Get(t.Context(), "gang", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := clusters.Delete(t.Context(), "gang", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fresh := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": object.Object["spec"]}}
	fresh.SetName("gang")
	fresh.SetLabels(object.GetLabels())
	fresh.SetAnnotations(object.GetAnnotations())
	if _, err := clusters.Create(t.Context(), fresh, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.endsAsDeleted(id)
	w.released(id)
	w.nothingOf(id)
}

// A user deletes the object and has its pods stay: they are removed, and their
// places are held until they are gone.
func TestPodsThatAreLeftBehindAreRemoved(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{ForceAfter: seconds(1)}, 1)
	next := w.submit(stack.RayCluster("next", 1, 1))
	w.waits(next, workload.ReasonFit)
	orphan := metav1.DeletePropagationOrphan
	if err := w.rayClusters().Delete(t.Context(), "gang", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	w.endsAsDeleted(id)
	w.reaches(next, workload.Running)
	w.nothingOf(id)
}

// A namespace that goes away takes its workloads with it, and their places are
// free; what is submitted to it later waits, with the API server's words, until an
// administrator has made it again.
func TestANamespaceThatGoesAway(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 1)
	if err := w.Kube.CoreV1().Namespaces().Delete(t.Context(), w.Namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.endsAsDeleted(id)
	later := w.submit(stack.RayCluster("later", 1, 1))
	waits := await(w, "it waits for its namespace", func(c *event.WorkloadChanged) bool {
		return c.ID == later && c.Reason != nil && c.Reason.Kind == workload.ReasonBackoff && strings.Contains(c.Reason.Message, w.Namespace)
	})
	if waits.Phase != workload.Queued || waits.Holding {
		t.Errorf("it is %s, and holds places: %v", waits.Phase, waits.Holding)
	}
}

// An edit of the object's templates changes nothing that runs, as with KubeRay
// alone; and the object is still Muster's to remove.
func TestAnEditBehindOurBack(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 1)
	head := w.headUID(id)
	patch := []byte(`{"spec":{"headGroupSpec":{"rayStartParams":{"num-cpus":"0"}}}}`)
	if _, err := w.rayClusters().Patch(t.Context(), "gang", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// The operator works in order: when the next gang runs it has seen the edit.
	w.reaches(w.submit(stack.RayCluster("next", 0, 0)), workload.Running)
	if w.headUID(id) != head || w.one(id).Phase != workload.Running {
		t.Error("an edit of the template restarted the head")
	}
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
}

// A user takes our label from the object: to Muster it is deleted, and it goes
// with its pods, for it is the very object that was created.
func TestALabelThatIsTakenAway(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{ForceAfter: seconds(1)}, 1)
	next := w.submit(stack.RayCluster("next", 1, 1))
	w.waits(next, workload.ReasonFit)
	patch := []byte(`{"metadata":{"labels":{"` + kube.WorkloadLabel + `":null,"` + kube.ClusterLabel + `":null}}}`)
	if _, err := w.rayClusters().Patch(t.Context(), "gang", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.endsAsDeleted(id)
	w.nothingOf(id)
	w.reaches(next, workload.Running)
	w.asPlanned(next)
}

// TestAPodThatIsTakenAway: a pod of a RayCluster that has lost our labels is deleted,
// and the gang is whole again, on its places or as its next attempt.
func TestAPodThatIsTakenAway(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 1)
	patch := []byte(`{"metadata":{"labels":{"` + kube.WorkloadLabel + `":null,"` + kube.ClusterLabel + `":null}}}`)
	taken := types.UID("")
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] == "workers" {
			taken = pod.UID
			if _, err := w.Kube.CoreV1().Pods(w.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.untilPods("the pod is gone", func() bool {
		pods, err := w.Kube.CoreV1().Pods(w.Namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.UID == taken })
	})
	w.untilPods("the gang is whole", func() bool {
		pods := w.pods(id)
		bound := !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Spec.NodeName == "" || p.DeletionTimestamp != nil })
		return w.one(id).Phase == workload.Running && len(pods) == 2 && bound
	})
	w.asPlanned(id)
}

// A user lifts the gate of a pod that has not been admitted: where the scheduler
// puts it is no place of the gang, so it is removed, and its replacement waits.
func TestAGateThatOthersLift(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 1)
	w.scale("gang", 3)
	w.grows(id, "2 more")
	w.untilPods("KubeRay has created the pods", func() bool { return len(w.pods(id)) == 4 })
	w.nodes("small", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1") // for one of the two
	var lifted types.UID
	for _, pod := range w.pods(id) {
		if len(pod.Spec.SchedulingGates) == 0 || lifted != "" {
			continue
		}
		lifted = pod.UID
		patch := []byte(`{"spec":{"schedulingGates":null}}`)
		if _, err := w.Kube.CoreV1().Pods(w.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.untilPods("the pod is replaced by one at its gate", func() bool {
		gated := 0
		for _, pod := range w.pods(id) {
			if pod.UID == lifted {
				return false
			}
			if len(pod.Spec.SchedulingGates) > 0 {
				gated++
			}
		}
		return gated == 2
	})
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.sized(id, 3)
	w.asPlanned(id)
}
