package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/spec/workload"

	"muster.dev/muster/test/stack"
)

func TestUnmanagedPodsTakeAndGiveBackSpace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	taking := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "notebook"}, Spec: corev1.PodSpec{
		NodeName: w.NodeName("gpu", 0),
		Containers: []corev1.Container{{
			Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: taking, Limits: taking},
		}},
	}}
	pods := w.Kube.CoreV1().Pods(w.Namespace)
	if _, err := pods.Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the foreign pod is counted", func() bool { return w.knownNodes()[0].Unmanaged["nvidia.com/gpu"] == 1 })
	id := w.submit(stack.RayCluster("gang", 1, 1))
	w.waits(id, workload.ReasonFit)
	w.nothingOf(id)
	now := int64(0)
	if err := pods.Delete(t.Context(), "notebook", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	w.reaches(id, workload.Running)
	w.asPlanned(id)
}

// alike checks that the nodes of two groups have the same shape: the dev cluster's command has
// made those of one, and AddNodes those of the other.
func (w *world) alike(one, other string) {
	w.t.Helper()
	shape := func(group string) (map[string]string, corev1.NodeStatus) {
		node, err := w.Kube.CoreV1().Nodes().Get(w.ctx, w.NodeName(group, 0), metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for key, value := range node.Labels {
			node.Labels[key] = strings.ReplaceAll(value, "-"+group, "")
		}
		for i := range node.Status.Addresses {
			address := &node.Status.Addresses[i]
			address.Address = strings.ReplaceAll(address.Address, "-"+group, "")
		}
		for i := range node.Status.Conditions {
			condition := &node.Status.Conditions[i]
			condition.LastHeartbeatTime, condition.LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
		return node.Labels, node.Status
	}
	labels, status := shape(one)
	otherLabels, otherStatus := shape(other)
	if diff := cmp.Diff(labels, otherLabels) + cmp.Diff(status, otherStatus); diff != "" {
		w.t.Errorf("nodes of groups %s and %s differ (-%s +%s):\n%s", one, other, one, other, diff)
	}
}

func TestNodesComeGoAndAreCordoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Each node holds one gang: head and worker.
	w.nodes("first", 1, "cpu=2", "memory=32Gi", "nvidia.com/gpu=1")
	lost := w.submit(stack.RayCluster("lost", 1, 1))
	w.reaches(lost, workload.Running)
	waiting := w.submit(stack.RayCluster("waiting", 1, 1))
	w.waits(waiting, workload.ReasonFit)

	err := w.Node(t.Context(), "add", "--pattern", w.Pool+"-second-{0}", "--label", "test.muster.dev/pool="+w.Pool,
		"--resource", "cpu=2", "--resource", "memory=32Gi", "--resource", "nvidia.com/gpu=1")
	if err != nil {
		t.Fatal(err)
	}
	w.reaches(waiting, workload.Running)
	w.asPlanned(waiting)

	// Its node goes: torn down, back in the queue with its place, started again.
	if err := w.Node(t.Context(), "remove", w.NodeName("first", 0)); err != nil {
		t.Fatal(err)
	}
	if reason := w.reaches(lost, workload.Evicting).Reason; reason.Kind != workload.ReasonNodeLost {
		t.Errorf("evicted because of %+v", reason)
	}
	w.waits(lost, workload.ReasonFit)
	w.nothingOf(lost)
	w.nodes("third", 1, "cpu=2", "memory=32Gi", "nvidia.com/gpu=1")
	w.alike("second", "third")
	w.until("the lost gang runs again", func() bool {
		record := w.one(lost)
		return record.Phase == workload.Running && record.Attempt == 2
	})
	w.asPlanned(lost)

	if err := w.Node(t.Context(), "cordon", w.NodeName("third", 0)); err != nil {
		t.Fatal(err)
	}
	w.until("the node is known to be cordoned", func() bool {
		for _, n := range w.knownNodes() {
			if n.Cordoned {
				return true
			}
		}
		return false
	})
	w.cancel(lost)
	w.released(lost)
	kept := w.submit(stack.RayCluster("kept-off", 1, 1))
	if reason := w.waits(kept, workload.ReasonFit); reason.Shortage.Excluded["cordoned"] != 1 {
		t.Errorf("shortage is %+v, want one node excluded as cordoned", reason.Shortage)
	}
	if err := w.Node(t.Context(), "uncordon", w.NodeName("third", 0)); err != nil {
		t.Fatal(err)
	}
	w.reaches(kept, workload.Running)
}
