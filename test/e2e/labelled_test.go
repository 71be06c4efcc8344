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
// no manifest has that, and Running when there is room.
func TestRayJobOfKueuesGuideByKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	created := w.kubectl(textClassifier(t, "default"), "create", "-f", "-")
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
	says(t, w.kubectl("", "get", "nodes"), "NAME +STATUS +ROLES +AGE +VERSION", w.NodeName("gpu", 0)+" +Ready")
	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool { return state(u) == "running" })
	says(t, w.kubectl("", "get", "pods"), "NAME +READY +STATUS +RESTARTS +AGE", name+`-\S+-head-\S+ +1/1 +Running`)
	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool { return state(u) == "succeeded" })
}

// A labelled RayCluster runs on its places; deleting it frees them, and the next one
// that is held starts, as it was submitted.
func TestALabelledRayClusterIsReleasedAndItsDeletionFreesItsPlaces(t *testing.T) {
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
	w.kubectl("", "patch", "raycluster", "two", "--type=merge", "-p", `{"spec":{"rayVersion":"0.0.1"}}`)
	w.kubectl("", "delete", "raycluster", "one")
	running := w.rayObject("rayclusters", "two", func(u *unstructured.Unstructured) bool { return state(u) == "running" })
	if version, _, _ := unstructured.NestedString(running.Object, "spec", "rayVersion"); version == "0.0.1" {
		t.Error("what was edited while it waited runs, and not what was admitted")
	}
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "one-") {
		t.Errorf("pods of the first are left:\n%s", pods)
	}
}

// What suspend cannot hold is refused when it is created, with the remedy.
func TestWhatCannotBeSuspendedIsRefusedAtCreation(t *testing.T) {
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
	// Without a queue Muster leaves it alone.
	says(t, w.kubectl(stack.RayCluster("free", 0, 0), "create", "--dry-run=server", "-o", "yaml", "-f", "-"), "name: free")
}
