package kubernetes

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

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
