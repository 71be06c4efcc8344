package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/test/stack"
)

// TestAForgedHeadElsewhere: a pod of another namespace that carries all labels of a
// job's head does not make Muster believe that the head was replaced, and what it
// takes of the node is counted.
func TestAForgedHeadElsewhere(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=8", "memory=64Gi", "nvidia.com/gpu=2")
	id := w.submit(stack.RayJob("robbed", 1, 1, "succeeded", "1h"))
	w.reaches(id, workload.Running)
	var head corev1.Pod
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] == "headgroup" {
			head = pod
		}
	}
	if head.Name == "" {
		t.Fatal("the job has no head")
	}
	theirs := w.Namespace + "-theirs"
	namespaces := w.Kube.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespaces.Delete(context.WithoutCancel(t.Context()), theirs, metav1.DeleteOptions{}) })
	forged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "zz-" + head.Name, Labels: head.Labels},
		Spec: corev1.PodSpec{
			NodeName: head.Spec.NodeName, Tolerations: head.Spec.Tolerations,
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
			}}},
		},
	}
	pods := w.Kube.CoreV1().Pods(theirs)
	created, err := pods.Create(t.Context(), forged, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.until("the forged head is ready", func() bool {
		pod, err := pods.Get(t.Context(), created.Name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	w.until("its use is counted", func() bool {
		nodes := w.knownNodes()
		return len(nodes) == 1 && nodes[0].Free["nvidia.com/gpu"] == 0
	})
	// Longer than a loss is waited for: another gang goes through its whole life.
	other := w.submit(stack.RayJob("other", 1, 0, "succeeded", "3s"))
	w.reaches(other, workload.Succeeded)
	for _, e := range bustest.Heard[*event.WorkloadChanged](w.heard) {
		if e.ID == id && e.Phase == workload.Evicting {
			t.Errorf("the job was evicted: %+v", e.Reason)
		}
	}
}
