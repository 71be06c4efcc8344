package security

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

var (
	rayJobs        = ray.Resource("rayjobs")
	legacyWrappers = schema.GroupVersionResource{Group: "workload.codeflare.dev", Version: "v1beta1", Resource: "appwrappers"}
)

// Amounts that take for ever to add, or that no node has, are refused on the object
// that asks for them, if the API server lets them through; what is behind them runs.
// KubeRay is part of that: it never ends adding up an object's 1e99999999, which an
// admission policy keeps from it.
func TestHostileQuantitiesByKubectl(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{})
	if err := w.AddNodes(t.Context(), "cpu", 1, "cpu=16", "memory=64Gi"); err != nil {
		t.Fatal(err)
	}
	cluster := func(name, amount string) string { return labelledAsking(stack.RayCluster(name, 1, 0), amount) }
	job := func(name, amount string) string {
		return labelledAsking(stack.RayJob(name, 1, 0, "SUCCEEDED", "1s"), amount)
	}
	wrapper := func(name, amount string) string {
		return stack.AppWrapper(w.Namespace, name, fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {template: {spec: {restartPolicy: Never, containers: ["+
			"{name: a, image: i, resources: {requests: {memory: %q}}}, {name: b, image: i, resources: {requests: {memory: \"1\"}}}]}}}", name, amount))
	}
	let := 0
	for i, amount := range []string{"1e99999999", "-1", "-1e99999999", "1e400", "99999999999999999999", "1" + strings.Repeat("0", 200), "1e-99999999", "NaN", "1Zi", ""} {
		for kind, c := range map[string]struct {
			resource schema.GroupVersionResource
			manifest func(name, amount string) string
		}{"raycluster": {rayClusters, cluster}, "rayjob": {rayJobs, job}, "appwrapper": {legacyWrappers, wrapper}} {
			name := fmt.Sprintf("%s-%d", kind, i)
			output, err := w.Kubectl(t.Context(), c.manifest(name, amount), "create", "-f", "-")
			switch {
			case errors.Is(err, stack.ErrNoKubectl):
				t.Skip(err)
			case err != nil && !strings.Contains(output, "nvalid") && !strings.Contains(output, "quantities must match"): // words of the API server
				t.Errorf("%s of %.40q: the API server refuses it unclearly: %s", kind, amount, output)
			case err == nil:
				let++
				if why := w.rejected(c.resource, name); why == "" || len(why) > 4000 {
					t.Errorf("%s of %.40q is refused because %.200q, want a short reason", kind, amount, why)
				}
			}
		}
	}
	if let == 0 {
		t.Error("the API server let nothing through: nothing was tried")
	}
	t.Logf("%d objects were let through and refused", let)
	w.create(w.Dynamic, labelledAsking(stack.RayCluster("honest", 1, 0), "1Gi"))
	w.hasState("honest", "admitted", "")
}

// labelledAsking is a manifest of a labelled Ray object whose head pod asks for so much
// memory.
func labelledAsking(manifest, memory string) string {
	manifest = stack.With(stack.Labelled(manifest, "muster.dev/queue-name", "default"), map[string]any{"suspend": true})
	return strings.Replace(manifest, `"1Gi"`, fmt.Sprintf("%q", memory), 2)
}

// rejected waits until an object says that it is refused, and returns why.
func (w *tenants) rejected(resource schema.GroupVersionResource, name string) (why string) {
	w.t.Helper()
	w.until(name+" is refused", func() bool {
		found, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		if resource.Group == "ray.io" {
			why = found.GetAnnotations()["muster.dev/reason"]
			return found.GetAnnotations()["muster.dev/state"] == "rejected"
		}
		refused, _, _ := unstructured.NestedBool(found.Object, "status", "rejected") // absent reads as false
		why = fmt.Sprint(found.Object["status"])
		return refused
	})
	return why
}
