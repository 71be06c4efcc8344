package security

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// The service account of an autoscaling head may patch its RayCluster and pods, as
// KubeRay gives it the right. With it a gang gets no pod past its queue: gates,
// labels and templates stay, and more workers wait for their places.
func TestTheHeadCannotPassTheQueueBy(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	if err := w.AddNodes(t.Context(), "gpu", 1, "cpu=64", "memory=64Gi", "nvidia.com/gpu=1"); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.With(stack.RayCluster("grows", 1, 1), map[string]any{"enableInTreeAutoscaling": false}))
	w.reaches(id, workload.Running)
	head := w.as("system:serviceaccount:"+w.Namespace+":head",
		rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"get", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "patch"}},
	)
	clusters, pods := head.Resource(rayClusters).Namespace(w.Namespace), head.Resource(podsOf).Namespace(w.Namespace)
	w.until("the head has its rights", func() bool {
		_, err := clusters.Patch(t.Context(), "grows", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
		return err == nil
	})
	const group = "/spec/workerGroupSpecs/0"
	for name, c := range map[string]struct {
		patch []map[string]any
		want  string
	}{
		"gates":     {[]map[string]any{{"op": "remove", "path": group + "/template/spec/schedulingGates"}}, "worker groups and their templates"},
		"labels":    {[]map[string]any{{"op": "remove", "path": group + "/template/metadata/labels"}}, "worker groups and their templates"},
		"image":     {[]map[string]any{{"op": "replace", "path": group + "/template/spec/containers/0/image", "value": "x"}}, "worker groups and their templates"},
		"privilege": {[]map[string]any{{"op": "add", "path": "/spec/headGroupSpec/template/spec/hostPID", "value": true}}, "the head and what KubeRay adds to it"},
		"new group": {[]map[string]any{{"op": "add", "path": "/spec/workerGroupSpecs/-", "value": map[string]any{
			"groupName": "more", "replicas": 11, "minReplicas": 0, "maxReplicas": 11, "rayStartParams": map[string]any{},
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}},
		}}}, "worker groups and their templates"},
		"mark": {[]map[string]any{{"op": "remove", "path": "/metadata/labels/muster.dev~1workload"}}, "are Muster's: they cannot be changed"},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(c.patch)
			if err != nil {
				t.Fatal(err)
			}
			_, err = clusters.Patch(t.Context(), "grows", types.JSONPatchType, encoded, metav1.PatchOptions{})
			denied(t, name, err, c.want)
		})
	}

	grow := []byte(`[{"op":"replace","path":"` + group + `/maxReplicas","value":12},{"op":"replace","path":"` + group + `/replicas","value":12}]`)
	if _, err := clusters.Patch(t.Context(), "grows", types.JSONPatchType, grow, metav1.PatchOptions{}); err != nil {
		t.Fatalf("more workers, as Ray's autoscaler asks for them: %v", err)
	}
	var waiting corev1.Pod
	w.until("a worker waits for its place", func() bool {
		list, err := w.Kube.CoreV1().Pods(w.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			if len(pod.Spec.SchedulingGates) > 0 {
				waiting = pod
			}
		}
		return len(list.Items) > 2 && waiting.Name != ""
	})
	for name, c := range map[string]struct{ patch, want string }{
		"gate of a pod":   {`[{"op":"remove","path":"/spec/schedulingGates"}]`, "is Muster's to lift"},
		"labels of a pod": {`[{"op":"remove","path":"/metadata/labels/muster.dev~1workload"}]`, "are Muster's: they cannot be set or changed"},
		"node of a pod":   {`[{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}]`, "Muster decides on which node"},
		"owner of a pod":  {`[{"op":"remove","path":"/metadata/ownerReferences"}]`, "the controller of a pod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pods.Patch(t.Context(), waiting.Name, types.JSONPatchType, []byte(c.patch), metav1.PatchOptions{})
			denied(t, name, err, c.want)
		})
	}
	list, err := w.Kube.CoreV1().Pods(w.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		t.Fatal(err)
	}
	workers := 0
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" && pod.Labels["ray.io/node-type"] == "worker" {
			workers++
		}
	}
	if workers != 1 {
		t.Errorf("%d workers run, and one was admitted", workers)
	}
}
