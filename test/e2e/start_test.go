package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// quotaName is the ResourceQuota of these tests.
const quotaName = "pods"

// limitPods sets how many pods the namespace may have, and waits until the API server
// counts them.
func (w *world) limitPods(most int64) {
	w.t.Helper()
	quotas, limit := w.Kube.CoreV1().ResourceQuotas(w.Namespace), *resource.NewQuantity(most, resource.DecimalSI)
	wanted := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}}
	wanted.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: limit}
	_, err := quotas.Create(w.ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = quotas.Update(w.ctx, wanted, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.until(fmt.Sprintf("the quota is %d pods", most), func() bool {
		found, err := quotas.Get(w.ctx, quotaName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		hard, is := found.Status.Hard[corev1.ResourcePods]
		return is && hard.Equal(limit)
	})
}

// waitsForQuota waits until the reason of a gang that starts is the quota.
func (w *world) waitsForQuota(id workload.ID) string {
	w.t.Helper()
	return await(w, "the reason is the quota", func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Reason != nil && e.Reason.Kind == workload.ReasonStarting && strings.Contains(e.Reason.Message, "ResourceQuota "+quotaName)
	}).Reason.Message
}

// podChanges watches the pods of the namespace from now on.
func (w *world) podChanges() watch.Interface {
	w.t.Helper()
	pods := w.Kube.CoreV1().Pods(w.Namespace)
	list, err := pods.List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	changes, err := pods.Watch(w.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(changes.Stop)
	return changes
}

// existingAtFirstStart reads changes until all pods, of the given number, are past their gates, and returns
// how many existed when the first was.
func (w *world) existingAtFirstStart(changes watch.Interface, all int) (existing int) {
	w.t.Helper()
	exist, past := map[string]bool{}, map[string]bool{}
	for change := range changes.ResultChan() {
		pod, is := change.Object.(*corev1.Pod)
		if !is {
			w.t.Fatalf("the watch ended: %v", change.Object)
		}
		exist[pod.Name] = true
		if len(pod.Spec.SchedulingGates) == 0 {
			if len(past) == 0 {
				existing = len(exist)
			}
			past[pod.Name] = true
		}
		if len(past) == all {
			return existing
		}
	}
	w.t.Fatalf("the watch ended when %d of %d pods were past their gates", len(past), all)
	return 0
}

// TestNothingStartsWithoutRoomInTheQuota: while the quota of the namespace has no room for
// the pods that are missing, none of the gang starts, and its reason says why. It runs when
// the quota is raised.
func TestNothingStartsWithoutRoomInTheQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=64", "memory=256Gi", "nvidia.com/gpu=8")
	w.limitPods(3)
	id := w.submit(stack.RayCluster("cramped", 4, 1))
	message := w.waitsForQuota(id)
	if !strings.Contains(message, `has no room for 2 pods of "workers"`) || !strings.Contains(message, "they need 2 of pods, and 0 is left") {
		t.Errorf("the reason is %q, want that 2 workers are missing and 0 pods left", message)
	}
	for _, pod := range w.pods(id) {
		if len(pod.Spec.SchedulingGates) != 1 || pod.Spec.NodeName != "" {
			t.Errorf("pod %s has the gates %v and is on node %q; want it at its gate", pod.Name, pod.Spec.SchedulingGates, pod.Spec.NodeName)
		}
	}
	w.limitPods(5)
	w.reaches(id, workload.Running)
	w.asPlanned(id)
}

// TestWholeGangsStartWhole: a gang that asks to start whole has no pod past its gate before
// all its pods exist.
func TestWholeGangsStartWhole(t *testing.T) {
	t.Parallel()
	const workers = 12
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=64", "memory=256Gi", "nvidia.com/gpu=16")
	changes := w.podChanges()
	id := w.submit(stack.Annotated(stack.RayCluster("whole", workers, 1), kube.StartKey, workload.StartWhole.String()))
	if existing := w.existingAtFirstStart(changes, workers+1); existing != workers+1 {
		t.Errorf("the first pod left its gate when %d of %d pods existed", existing, workers+1)
	}
	w.reaches(id, workload.Running)
	w.asPlanned(id)
}
