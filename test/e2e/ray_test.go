package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// edited returns a manifest with changes to what a function is shown.
func edited(t *testing.T, manifest string, change func(object map[string]any)) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	change(object)
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// listed lists, uncached, objects of a resource of a workload.
func (w *world) listed(resource string, id workload.ID) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.Dynamic.Resource(ray.Resource(resource)).List(w.ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel + "=" + string(id)})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// patch changes the one object of a workload as a user of the cluster would, and
// waits until KubeRay has seen it.
func (w *world) patch(resource string, id workload.ID, patch string) {
	w.t.Helper()
	object := w.listed(resource, id)[0]
	client := w.Dynamic.Resource(ray.Resource(resource)).Namespace(object.GetNamespace())
	patched, err := client.Patch(w.ctx, object.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.until(fmt.Sprintf("KubeRay has seen the change of %s %s", resource, object.GetName()), func() bool {
		seen, _, _ := unstructured.NestedInt64(w.listed(resource, id)[0].Object, "status", "observedGeneration")
		return seen >= patched.GetGeneration()
	})
}

// A RayService is admitted, runs and is cancelled as a gang; a change of it, for
// which KubeRay would start a second cluster beside the first, starts none.
func TestRayService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	id := w.submit(edited(t, stack.RayCluster("serve", 2, 1), func(object map[string]any) {
		object["kind"] = "RayService"
		object["spec"] = map[string]any{
			"serveConfigV2":    "applications:\n- name: app\n  import_path: a:b\n  deployments: [{name: d}]\n",
			"rayClusterConfig": object["spec"],
		}
	}))
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	next := w.submit(stack.RayCluster("next", 1, 1))
	w.waits(next, workload.ReasonFit)

	w.patch("rayservices", id, `[{"op": "replace", "path": "/spec/rayClusterConfig/rayVersion", "value": "2.99.0"}]`)
	if clusters := w.listed("rayclusters", id); len(clusters) != 1 {
		t.Errorf("after a change there are %d RayClusters, want one", len(clusters))
	}
	if pods := w.pods(id); len(pods) != 3 {
		t.Errorf("after a change there are %d pods, want 3", len(pods))
	}
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
	w.reaches(next, workload.Running)
}

func autoscaled(t *testing.T, manifest string, replicas, least, most int) string {
	t.Helper()
	return edited(t, manifest, func(object map[string]any) {
		spec := object["spec"].(map[string]any)
		spec["enableInTreeAutoscaling"] = true
		group := spec["workerGroupSpecs"].([]any)[0].(map[string]any)
		group["replicas"], group["minReplicas"], group["maxReplicas"] = replicas, least, most
	})
}

// An autoscaled cluster has a place for each pod of its maximum from the start,
// its pods come when the autoscaler asks for them, and beyond that none gets a node.
func TestAutoscaledClusterGrowsIntoItsPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	id := w.submit(autoscaled(t, stack.RayCluster("grows", 1, 1), 1, 0, 3))
	w.reaches(id, workload.Running)
	if pods := w.pods(id); len(pods) != 2 {
		t.Errorf("the cluster starts with %d pods, want 2", len(pods))
	}
	other := w.submit(stack.RayCluster("other", 2, 1))
	if shortage := w.waits(other, workload.ReasonFit).Shortage; shortage.Sum != 1 {
		t.Errorf("free for others are %d GPUs, want 1 of 4", shortage.Sum)
	}

	// As the autoscaler does.
	w.patch("rayclusters", id, `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]`)
	w.untilPods("the new pods are bound", func() bool {
		bound := 0
		for _, pod := range w.pods(id) {
			if pod.Spec.NodeName != "" {
				bound++
			}
		}
		return bound == 4
	})
	w.asPlanned(id)

	// What is above the maximum is not admitted yet, and takes nothing.
	w.patch("rayclusters", id, `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 5},
		{"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 5}]`)
	w.grows(id, "2 more")
	w.untilPods("KubeRay has created two pods too many", func() bool { return len(w.pods(id)) == 6 })
	if started := w.started(id); started != 4 {
		t.Errorf("%d pods have started, want 4", started)
	}
	w.cancel(id)
	w.reaches(other, workload.Running)
	w.nothingOf(id)
}

// At its minimum a cluster grows by admissions of what its autoscaler asks for, and
// gives places back at once when that takes pods away.
func TestAutoscaledClusterAtItsMinimum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	id := w.submit(edited(t, autoscaled(t, stack.RayCluster("small", 1, 1), 1, 1, 100), func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{kube.AutoscalingKey: "minimum"}
	}))
	w.reaches(id, workload.Running)
	other := w.submit(stack.RayCluster("other", 1, 1))
	w.reaches(other, workload.Running) // the GPU beside is not kept
	w.patch("rayclusters", id, `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 3}]`)
	w.grows(id, "2 more")
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.sized(id, 3)
	w.takeAway(id, 2)
	w.sized(id, 1)
	if record := w.one(id); record.Attempt != 1 || record.Phase != workload.Running {
		t.Errorf("it is %s, attempt %d, because of %+v", record.Phase, record.Attempt, record.Reason)
	}
}

// The pod that cleans Redis up after a cluster runs in the place of its head, so
// the cluster is gone soon and its place free.
func TestRedisIsCleanedUpInTheHeadsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("one", 1, "cpu=2500m", "memory=32Gi")
	id := w.submit(edited(t, stack.RayCluster("tolerant", 1, 0), func(object map[string]any) {
		object["spec"].(map[string]any)["gcsFaultToleranceOptions"] = map[string]any{"redisAddress": "redis:6379"}
	}))
	w.reaches(id, workload.Running)
	next := w.submit(stack.RayCluster("next", 1, 0))
	w.waits(next, workload.ReasonFit)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
	w.reaches(next, workload.Running)
}
