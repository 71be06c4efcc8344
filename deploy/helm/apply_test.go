package helm_test

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// prometheusKinds have no CRDs in the dev cluster; what is in them is looked at
// by TestMonitoring.
var prometheusKinds = []string{"PodMonitor", "PrometheusRule"}

// TestDryRun has a real API server validate every object of every mode, unknown
// fields included, without storing any.
func TestDryRun(t *testing.T) {
	t.Parallel()
	apply := applier(t)
	for mode, values := range modes() {
		objects := render(t, values)
		for _, key := range slices.Sorted(maps.Keys(objects)) {
			if slices.Contains(prometheusKinds, objects[key].GetKind()) {
				continue
			}
			if err := apply(objects[key], metav1.DryRunAll); err != nil {
				t.Errorf("%s: %s: %v", mode, key, err)
			}
		}
	}
}

// applier makes the namespaces of the modes in the dev cluster.
func applier(t *testing.T) func(object *unstructured.Unstructured, dryRun ...string) error {
	t.Helper()
	admin, err := clientcmd.BuildConfigFromFlags("", kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	apply := func(object *unstructured.Unstructured, dryRun ...string) error {
		mapping, err := mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			return err
		}
		encoded, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(t.Context(), object.GetName(),
			types.ApplyPatchType, encoded, metav1.PatchOptions{FieldManager: "helm-test", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
		return err
	}
	for _, name := range []string{namespace, "team-a", "team-b"} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if err := apply(object); err != nil {
			t.Fatal(err)
		}
	}
	return apply
}
