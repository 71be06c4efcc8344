package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
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
		found, err = w.Dynamic.Resource(ray.Resource(resource)).
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

func state(of *unstructured.Unstructured) string { return of.GetAnnotations()[kube.StateKey] }

// runs reports whether a Ray object is admitted and KubeRay has all its pods ready.
func runs(of *unstructured.Unstructured) bool {
	at := []string{"status", "state"}
	if of.GetKind() == workload.KindRayJob {
		at = []string{"status", "rayClusterStatus", "state"}
	}
	pods, _, _ := unstructured.NestedString(of.Object, at...) // absent reads as empty
	return state(of) == kube.StateAdmitted && pods == "ready"
}

// The RayJob of the Kueue guide: labelled, created by kubectl, Suspended although
// no manifest has that, and Running when there is room.
func TestRayJobOfKueuesGuideByKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	created := w.kubectl(textClassifier(t, "default"), "create", "-f", "-")
	hasInOrder(t, created, `rayjob.ray.io/pytorch-text-classifier-\w+ created`)
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(created), "rayjob.ray.io/"), " created")

	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool {
		status, _, _ := unstructured.NestedString(u.Object, "status", "jobDeploymentStatus")
		return status == "Suspended" && state(u) == "queued" && u.GetAnnotations()["muster.dev/reason"] != ""
	})
	hasInOrder(t, w.kubectl("", "get", "rayjob", name, "-o", "yaml"), "suspend: true", "jobDeploymentStatus: Suspended")
	hasInOrder(t, w.kubectl("", "describe", "rayjob", name), "muster.dev/reason:", "nvidia.com/gpu", "Events:", "MusterQueued")
	if pods := w.kubectl("", "get", "pods"); !strings.Contains(pods, "No resources found") {
		t.Errorf("while it is suspended there are pods:\n%s", pods)
	}

	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	hasInOrder(t, w.kubectl("", "get", "nodes"), "NAME +STATUS +ROLES +AGE +VERSION", w.NodeName("gpu", 0)+" +Ready")
	w.rayObject("rayjobs", name, runs)
	hasInOrder(t, w.kubectl("", "get", "pods"), "NAME +READY +STATUS +RESTARTS +AGE", name+`-\S+-head-\S+ +1/1 +Running`)
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
			w.rayObject("rayclusters", name, runs)
		}
	}
	w.rayObject("rayclusters", "two", func(u *unstructured.Unstructured) bool {
		return state(u) == "queued" && u.GetAnnotations()["muster.dev/reason"] != ""
	})
	hasInOrder(t, w.kubectlFails("", "patch", "raycluster", "two", "--type=merge", "-p", `{"spec":{"suspend":false}}`), "is Muster's to change")
	w.kubectl("", "patch", "raycluster", "two", "--type=merge", "-p", `{"spec":{"rayVersion":"0.0.1"}}`)
	w.kubectl("", "delete", "raycluster", "one")
	running := w.rayObject("rayclusters", "two", runs)
	if version, _, _ := unstructured.NestedString(running.Object, "spec", "rayVersion"); version == "0.0.1" {
		t.Error("what was edited while it waited runs, and not what was admitted")
	}
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "one-") {
		t.Errorf("pods of the first are left:\n%s", pods)
	}
}

// What waits counts as it was created: an edit by its owner is refused with what to do, and
// what is no edit of the spec passes. Once it runs, its size may change.
func TestTheSpecOfAQueuedObjectCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.kubectl("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: owner}\nrules: [{apiGroups: [ray.io], resources: [rayclusters, rayjobs], verbs: ['*']}]\n", "apply", "-f", "-")
	w.kubectl("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: owner}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owner}\n"+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: owner}]\n", "apply", "-f", "-")
	cluster := labelled(stack.RayCluster("waits", 1, 2), "muster.dev/queue-name", "default")
	w.kubectl(cluster, "apply", "--as", "owner", "-f", "-")
	w.kubectl(labelled(stack.RayJob("waits", 1, 2, "succeeded", "1s"), "muster.dev/queue-name", "default"), "create", "--as", "owner", "-f", "-")
	queued := func(u *unstructured.Unstructured) bool { return state(u) == "queued" && len(u.GetFinalizers()) > 0 }
	before := w.rayObject("rayclusters", "waits", queued)
	w.rayObject("rayjobs", "waits", queued)
	for object, patch := range map[string]string{
		"raycluster/waits": `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":7}]`,
		"rayjob/waits":     `[{"op":"replace","path":"/spec/rayClusterSpec/headGroupSpec/template/spec/containers/0/image","value":"other"}]`,
	} {
		hasInOrder(t, w.kubectlFails("", "patch", object, "--as", "owner", "--type=json", "-p", patch), "counts as it was created", "delete it and create it again")
		hasInOrder(t, w.kubectlFails("", "patch", object, "--as", "owner", "--type=merge", "-p", `{"spec":{"suspend":false}}`), "is Muster's to change")
		w.kubectl("", "label", object, "--as", "owner", "team=blue")
		w.kubectl("", "annotate", object, "--as", "owner", "note=mine")
	}
	w.kubectl(cluster, "apply", "--as", "owner", "-f", "-") // the same once more
	if after := w.rayObject("rayclusters", "waits", queued); after.GetUID() != before.GetUID() {
		t.Error("it is another object now")
	}
	w.kubectl("", "delete", "rayjob/waits", "--as", "owner")
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.rayObject("rayclusters", "waits", runs)
	w.kubectl("", "patch", "raycluster/waits", "--as", "owner", "--type=json", "-p", `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":0}]`)
	w.kubectl("", "delete", "raycluster/waits", "--as", "owner")
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
		hasInOrder(t, w.kubectlFails(manifest, "create", "-f", "-"), want)
	}
	// Without a queue Muster leaves it alone.
	hasInOrder(t, w.kubectl(stack.RayCluster("free", 0, 0), "create", "--dry-run=server", "-o", "yaml", "-f", "-"), "name: free")
}

// An object with a queue in a namespace of no queue is refused when it is created: nothing
// could release it.
func TestAQueuedObjectInANamespaceOfNoQueueIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.Namespace + "-elsewhere"
	w.kubectl("", "create", "namespace", elsewhere)
	defer w.kubectl("", "delete", "namespace", elsewhere, "--wait=false")
	manifest := stack.RayCluster("lost", 1, 1)
	hasInOrder(t, w.kubectlFails(labelled(manifest, "muster.dev/queue-name", "default"), "create", "-n", elsewhere, "-f", "-"), "Muster serves no queue in this namespace")
	w.kubectl(manifest, "create", "-n", elsewhere, "--dry-run=server", "-f", "-")
	w.kubectl(labelled(manifest, "muster.dev/queue-name", "default"), "create", "--dry-run=server", "-f", "-")
}
