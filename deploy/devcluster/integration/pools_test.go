package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testPools asks a pool of no nodes for some, as a queue does, and gives them back. Its nodes
// have four GPUs: no other node has as many, so that the pod that asks for four needs one of the
// pool.
func testPools(t *testing.T, i *instance) {
	i.do(t, "pool", "add", "l4", "--max=4", "--delay=500ms", "--idle=500ms", "--pattern=l4-{00}",
		"--resource=cpu=8,memory=32Gi", "--resource=nvidia.com/gpu=4", "--label=gpu=l4")
	if err := i.client.Create(t.Context(), i.workers(2)); err != nil {
		t.Fatal(err)
	}
	request := i.request(t, "one", 3)
	i.waitRequest(t, request, "Provisioned")
	i.waitPool(t, 2)
	pod := i.gpuPod(t, "four-gpus", 4)
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning || !strings.HasPrefix(pod.Spec.NodeName, "l4-") {
			return fmt.Sprintf("the pod is %s on %q, want it to run on a node of the pool", pod.Status.Phase, pod.Spec.NodeName)
		}
		return ""
	})

	i.do(t, "pool", "set", "l4", "--fail=1")
	failing := i.request(t, "two", 1)
	i.waitRequest(t, failing, "Failed")

	for _, object := range []client.Object{request, failing, pod} {
		if err := i.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	i.waitPool(t, 0)
	if out := i.do(t, "pool", "list"); !strings.Contains(out, "l4    0    4    -1     500ms  500ms  0s       0     0        false") {
		t.Errorf("pool list prints\n%s", out)
	}
	i.do(t, "pool", "remove", "l4")
}

func (i *instance) workers(gpus int64) *corev1.PodTemplate {
	list := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"gpu": "l4"}, Containers: []corev1.Container{{
			Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: list, Limits: list},
		}}}},
	}
}

func (i *instance) request(t *testing.T, name string, pods int) *unstructured.Unstructured {
	t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec": map[string]any{
			"provisioningClassName": "queued-provisioning.gke.io",
			"podSets":               []any{map[string]any{"count": int64(pods), "podTemplateRef": map[string]any{"name": "workers"}}},
		},
	}}
	if err := i.client.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	return request
}

// waitRequest waits until a condition of a request is true.
func (i *instance) waitRequest(t *testing.T, request *unstructured.Unstructured, condition string) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		if err := i.client.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(request.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == condition && c["status"] == "True" {
				return ""
			}
		}
		return fmt.Sprintf("conditions of request %s are %v, want %s", request.GetName(), conditions, condition)
	})
}

// waitPool waits until the pool l4 has that many nodes.
func (i *instance) waitPool(t *testing.T, want int) {
	t.Helper()
	eventually(t, waitTimeout, func(ctx context.Context) string {
		var list corev1.NodeList
		if err := i.client.List(ctx, &list, client.MatchingLabels{"devcluster.muster.dev/pool": "l4"}); err != nil {
			return err.Error()
		}
		if len(list.Items) != want {
			return fmt.Sprintf("the pool has %d nodes, want %d", len(list.Items), want)
		}
		return ""
	})
}
