package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// testNodes changes the nodes of a running instance in every way there is. A pod
// that needs what only the added nodes have shows what the changes do.
func testNodes(t *testing.T, i *instance) {
	added := strings.Fields(i.do(t, "node", "add", "--pattern=big-{00}", "--count=2",
		"--resource=cpu=64,memory=256Gi", "--resource=nvidia.com/gpu=8", "--label=size=big"))
	if want := []string{"big-00", "big-01"}; !slices.Equal(added, want) {
		t.Fatalf("added nodes %q, want %q", added, want)
	}
	more := strings.Fields(i.do(t, "node", "add", "--pattern=big-{00}", "--resource=cpu=1"))
	if want := []string{"big-02"}; !slices.Equal(more, want) {
		t.Fatalf("added node %q, want %q: taken names are left out", more, want)
	}

	i.do(t, "node", "cordon", "big-01")
	pod := i.gpuPod(t, "eight", 8)
	i.waitPod(t, pod, corev1.PodRunning, "big-00")
	waiting := i.gpuPod(t, "eight-more", 8)
	i.waitUnschedulable(t, waiting)
	i.do(t, "node", "uncordon", "-l", "size=big")
	i.waitPod(t, waiting, corev1.PodRunning, "big-01")

	i.do(t, "node", "break", "big-00")
	node, err := i.node(t.Context(), "big-00")
	if err != nil {
		t.Fatal(err)
	}
	if ready := condition(node, corev1.NodeReady); ready == corev1.ConditionTrue {
		t.Errorf("Ready of the broken node is %s", ready)
	}
	if !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoSchedule
	}) {
		t.Errorf("taints of the broken node are %v, want %s", node.Spec.Taints, corev1.TaintNodeUnreachable)
	}
	if err := i.client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := i.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp == nil {
		t.Errorf("the deleted pod on the broken node: %v, deleted at %v; want it to stay", err, pod.DeletionTimestamp)
	}
	i.do(t, "node", "repair", "big-00")
	i.waitGone(t, pod)
	if node, err = i.node(t.Context(), "big-00"); err != nil || condition(node, corev1.NodeReady) != corev1.ConditionTrue {
		t.Errorf("the repaired node: %v, conditions %v; want it Ready", err, node.Status.Conditions)
	}

	i.do(t, "node", "label", "big-0*", "topology.muster.dev/rack=r7", "size-")
	if node, err = i.node(t.Context(), "big-01"); err != nil {
		t.Fatal(err)
	}
	if _, sized := node.Labels["size"]; sized || node.Labels["topology.muster.dev/rack"] != "r7" {
		t.Errorf("labels of the relabelled node are %v", node.Labels)
	}

	i.do(t, "node", "remove", "big-*")
	i.waitGone(t, waiting)
	if _, err := i.node(t.Context(), "big-01"); !apierrors.IsNotFound(err) {
		t.Errorf("reading the removed node: %v, want not found", err)
	}
}

func (i *instance) gpuPod(t *testing.T, name string, gpus int64) *corev1.Pod {
	t.Helper()
	list := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: list, Limits: list},
		}}},
	}
	if err := i.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (i *instance) waitPod(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase, node string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != phase || pod.Spec.NodeName != node {
			return fmt.Sprintf("pod %s is %s on %q, want %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName, phase, node)
		}
		return ""
	})
}

func (i *instance) waitUnschedulable(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return ""
			}
		}
		return fmt.Sprintf("pod %s is on %q, want it unschedulable", pod.Name, pod.Spec.NodeName)
	})
}

func (i *instance) waitGone(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("pod %s is still there: %v", pod.Name, err)
		}
		return ""
	})
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}
