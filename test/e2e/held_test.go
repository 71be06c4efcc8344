package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/test/stack"
)

// labelled puts a queue label into a manifest in JSON.
func labelled(manifest, label, queue string) string {
	return strings.Replace(manifest, `"metadata":{`, fmt.Sprintf(`"metadata":{"labels":{%q:%q},`, label, queue), 1)
}

// rayObject waits for a Ray object to exist and be as expected.
func (w *world) rayObject(resource, name string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	var found *unstructured.Unstructured
	w.until(resource+"/"+name+" is as expected", func() bool {
		var err error
		found, err = w.Dynamic.Resource(schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: resource}).
			Namespace(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false
		case err != nil:
			w.t.Fatal(err)
		}
		return is(found)
	})
	return found
}

func state(of *unstructured.Unstructured) string { return of.GetAnnotations()["muster.dev/state"] }

// The RayJob of the Kueue guide: labelled, created by kubectl, Suspended although
// nobody wrote that, and Running when there is room.
func TestRayJobOfKueuesGuideByKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	job := strings.Replace(stack.RayJob("pytorch-text-classifier", 1, 1, "succeeded", "3s"), `"name":"pytorch-text-classifier"`, `"generateName":"pytorch-text-classifier-"`, 1)
	created := w.kubectl(labelled(job, "kueue.x-k8s.io/queue-name", "default"), "create", "-f", "-")
	says(t, created, `rayjob.ray.io/pytorch-text-classifier-\w+ created`)
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(created), "rayjob.ray.io/"), " created")

	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool {
		status, _, _ := unstructured.NestedString(u.Object, "status", "jobDeploymentStatus")
		return status == "Suspended" && state(u) == "queued" && u.GetAnnotations()["muster.dev/reason"] != ""
	})
	says(t, w.kubectl("", "get", "rayjob", name, "-o", "yaml"), "suspend: true", "jobDeploymentStatus: Suspended")
	says(t, w.kubectl("", "describe", "rayjob", name), "muster.dev/reason:", "nvidia.com/gpu", "Events:", "MusterQueued")
	if pods := w.kubectl("", "get", "pods"); !strings.Contains(pods, "No resources found") {
		t.Errorf("while it is suspended there are pods:\n%s", pods)
	}

	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool { return state(u) == "running" })
	says(t, w.kubectl("", "get", "pods"), "head", "Running")
	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool { return state(u) == "succeeded" })
}

// A held RayCluster runs on its places; deleting it frees them, and the next one
// that is held starts.
func TestAHeldRayClusterIsReleasedAndItsDeletionFreesItsPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	for _, name := range []string{"one", "two"} {
		w.kubectl(labelled(stack.RayCluster(name, 1, 2), "muster.dev/queue-name", "default"), "create", "-f", "-")
		if name == "one" {
			w.rayObject("rayclusters", name, func(u *unstructured.Unstructured) bool { return state(u) == "running" })
		}
	}
	w.rayObject("rayclusters", "two", func(u *unstructured.Unstructured) bool {
		return state(u) == "queued" && u.GetAnnotations()["muster.dev/reason"] != ""
	})
	says(t, w.kubectlFails("", "patch", "raycluster", "two", "--type=merge", "-p", `{"spec":{"suspend":false}}`), "is Muster's to change")
	w.kubectl("", "delete", "raycluster", "one")
	w.rayObject("rayclusters", "two", func(u *unstructured.Unstructured) bool { return state(u) == "running" })
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "one-") {
		t.Errorf("pods of the first are left:\n%s", pods)
	}
}

// What suspend cannot hold is refused when it is created, with the remedy.
func TestWhatCannotBeHeldIsRefusedAtCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := labelled(stack.RayJob("unheld", 1, 1, "succeeded", "1s"), "muster.dev/queue-name", "default")
	for change, want := range map[string]string{
		`"shutdownAfterJobFinishes":false`: "set it to true",
		`"shutdownAfterJobFinishes":false,"deletionStrategy":{"deletionRules":[{"policy":"DeleteCluster","condition":{"jobStatus":"SUCCEEDED"}}]}`: "cannot hold a RayJob with deletion rules",
		`"shutdownAfterJobFinishes":true,"clusterSelector":{"ray.io/cluster":"x"}`:                                                                 "rayClusterSpec of its own",
	} {
		manifest := strings.Replace(job, `"shutdownAfterJobFinishes":true`, change, 1)
		says(t, w.kubectlFails(manifest, "create", "-f", "-"), want)
	}
	// Without a queue it is nobody's business.
	says(t, w.kubectl(stack.RayCluster("free", 0, 0), "create", "--dry-run=server", "-o", "yaml", "-f", "-"), "name: free")
}
