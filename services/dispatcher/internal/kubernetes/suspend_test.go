package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/pkg/kube"
)

// TestOnlyResumedObjectsAreSuspended: an eviction suspends the object that Muster resumed.
// KubeRay copies the annotations of a RayJob to its RayCluster, which is deleted all the
// same.
func TestOnlyResumedObjectsAreSuspended(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ annotation, verb string }{
		"created by Muster":      {"", "delete"},
		"resumed by Muster":      {"own", "patch"},
		"copied from its RayJob": {"of-the-job", "delete"},
		"copied by a user":       {"other", "delete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ray.io/v1", "kind": "RayCluster"}}
			u.SetNamespace("n")
			u.SetName("r")
			u.SetUID("own")
			if c.annotation != "" {
				u.SetAnnotations(map[string]string{kube.SuspendedUIDKey: c.annotation})
			}
			objects := fake.NewSimpleDynamicClient(runtime.NewScheme(), u)
			client := &Client{objects: objects}
			if err := client.Delete(t.Context(), objectOf("RayCluster", u)); err != nil {
				t.Fatal(err)
			}
			if done := objects.Actions(); len(done) != 1 || done[0].GetVerb() != c.verb {
				t.Errorf("the API server got %v, want one %s", done, c.verb)
			}
		})
	}
}

// suspended is a RayCluster that waits for its release.
func suspended() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster",
		"metadata": map[string]any{
			"namespace": "n", "name": "r", "uid": "own", "labels": map[string]any{"muster.dev/queue-name": "q"}, "annotations": map[string]any{"note": "mine"},
		},
		"spec": map[string]any{"suspend": true, "rayVersion": "edited", "removed": true},
	}}
	return u
}

const stamped = `{"apiVersion": "ray.io/v1", "kind": "RayCluster",
	"metadata": {"namespace": "n", "name": "r", "labels": {"muster.dev/workload": "w", "muster.dev/cluster": "c", "muster.dev/attempt": "1", "muster.dev/queue": "q"}, "annotations": {"muster.dev/epoch": "7"}},
	"spec": {"rayVersion": "submitted"}}`

// TestAReleaseIsOneWrite: a suspended object is released as it was admitted by one patch,
// which names the object's state and no version of it. Only an object that the patch does
// not apply to is read.
func TestAReleaseIsOneWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		verbs  []string
		done   bool
		err    error
	}{
		"suspended":           {func(*unstructured.Unstructured) {}, []string{"patch"}, true, nil},
		"without annotations": {func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }, []string{"patch", "get", "patch"}, true, nil},
		"another object":      {func(u *unstructured.Unstructured) { u.SetUID("other") }, []string{"patch", "get"}, false, nil},
		"released before": {func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "spec", "suspend")
			u.SetLabels(map[string]string{kube.WorkloadLabel: "w", kube.ClusterLabel: "c", kube.AttemptLabel: "1"})
		}, []string{"patch", "get"}, true, nil},
		"resumed by another": {func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "spec", "suspend") }, []string{"patch", "get"}, false, ErrNotSuspended},
		"deleted": {func(u *unstructured.Unstructured) {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
			u.SetFinalizers([]string{kube.WorkloadFinalizer})
		}, []string{"patch", "get"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := suspended()
			c.change(u)
			objects := fake.NewSimpleDynamicClient(runtime.NewScheme(), u)
			// The API server answers to a failed test that the request is invalid.
			objects.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				_, object, err := clienttesting.ObjectReaction(objects.Tracker())(action)
				if err != nil {
					err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "r", err.Error(), 0, false)
				}
				return true, object, err
			})
			client := &Client{objects: objects}
			done, err := client.Release(t.Context(), "RayCluster", "own", json.RawMessage(stamped))
			if done != c.done || !errors.Is(err, c.err) {
				t.Fatalf("released: %v, %v; want %v, %v", done, err, c.done, c.err)
			}
			var verbs []string
			for _, action := range objects.Actions() {
				verbs = append(verbs, action.GetVerb())
			}
			if !slices.Equal(verbs, c.verbs) {
				t.Errorf("the API server got %q, want %q", verbs, c.verbs)
			}
			if !slices.Equal(c.verbs, []string{"patch"}) {
				return
			}
			got, err := objects.Resource(resources["RayCluster"]).Namespace("n").Get(t.Context(), "r", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			wanted := suspended()
			wanted.Object["spec"] = map[string]any{"suspend": false, "rayVersion": "submitted"}
			wanted.SetLabels(map[string]string{
				"muster.dev/queue-name": "q", kube.WorkloadLabel: "w", kube.ClusterLabel: "c", kube.AttemptLabel: "1", kube.QueueLabel: "q",
			})
			wanted.SetAnnotations(map[string]string{
				"note": "mine", kube.EpochKey: "7", kube.SuspendedUIDKey: "own", kube.StateKey: kube.StateAdmitted, kube.ReasonKey: "",
			})
			if diff := cmp.Diff(wanted.Object, got.Object); diff != "" {
				t.Errorf("the object is (-want +got):\n%s", diff)
			}
		})
	}
}
