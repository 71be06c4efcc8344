package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// An object that a ResourceQuota forbids is tried again with pauses. Its workload gives its
// places back meanwhile, has the words of the API server as its reason, and starts when an
// administrator has mended that.
func TestAnObjectThatAQuotaForbidsWaits(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{BackoffFirst: seconds(1), BackoffMost: seconds(2)})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	const counted = "count/rayclusters.ray.io"
	quotas := w.Kube.CoreV1().ResourceQuotas(w.Namespace)
	none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "objects"}}
	none.Spec.Hard = corev1.ResourceList{counted: *resource.NewQuantity(0, resource.DecimalSI)}
	if _, err := quotas.Create(w.ctx, none, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the quota holds", func() bool {
		found, err := quotas.Get(w.ctx, none.Name, metav1.GetOptions{})
		return err == nil && len(found.Status.Hard) > 0
	})
	id := w.submit(stack.RayCluster("forbidden", 1, 1))
	waits := await(w, "it waits with the words of the API server", func(c *event.WorkloadChanged) bool {
		return c.ID == id && c.Reason != nil && c.Reason.Kind == workload.ReasonBackoff && strings.Contains(c.Reason.Message, "exceeded quota: objects")
	})
	if waits.Phase != workload.Queued || waits.Holding || waits.Requeues != 0 {
		t.Errorf("it is %s, holds places: %v, with %d faults", waits.Phase, waits.Holding, waits.Requeues)
	}
	if err := quotas.Delete(w.ctx, none.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.reaches(id, workload.Running)
	w.asPlanned(id)
}
