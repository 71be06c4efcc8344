package security

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A user of Kubernetes takes the name of another by nothing that can be written on
// an object: not at its creation, not later, not by a label that comes later.
func TestAnIdentityIsNotForged(t *testing.T) {
	t.Parallel()
	w := newTenants(t, workload.Rules{Submitters: []workload.Submitters{{Who: []string{"kubernetes/*/vip-*"}}}})
	rights := rbacv1.PolicyRule{APIGroups: []string{"ray.io"}, Resources: []string{"rayclusters"}, Verbs: []string{"create", "get", "patch", "update", "delete"}}
	vip, mallory := w.as("vip-"+w.Pool, rights), w.as("mallory-"+w.Pool, rights)
	forged := func(name, labels, owners string) string {
		return strings.Replace(stack.With(stack.RayCluster(name, 0, 0), map[string]any{"suspend": true}), `"metadata":{`,
			`"metadata":{"labels":{`+labels+`},"annotations":{"muster.dev/user":"vip-`+w.Pool+`","muster.dev/user-groups":"system:masters"},`+owners, 1)
	}
	const queued = `"muster.dev/queue-name":"default"`
	patch := func(name, change string) error {
		_, err := mallory.Resource(rayClusters).Namespace(w.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
		return err
	}

	created := w.create(mallory, forged("later", "", ""))
	if user := created.GetAnnotations()["muster.dev/user"]; user != "mallory-"+w.Pool {
		t.Errorf("the API server says that %q created it", user)
	}
	denied(t, "a queue label that comes later", patch("later", `{"metadata":{"labels":{`+queued+`}}}`), "the queue label cannot be added, changed or removed later")

	w.create(mallory, forged("stamped", queued, ""))
	w.hasState("stamped", "rejected", `queue "default" does not exist or does not admit this submitter`)
	denied(t, "another user in the annotation", patch("stamped", `{"metadata":{"annotations":{"muster.dev/user":"vip"}}}`), "say who created the object")
	denied(t, "lifting the suspension", patch("stamped", `{"spec":{"suspend":false}}`), "is Muster's to change")
	const owners = `"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"0b1e7a3c-2f0f-4b62-9d5e-d1f7f8f3b1aa","controller":true}]`
	denied(t, "a controller that comes later", patch("stamped", `{"metadata":{`+owners+`}}`), "the controller of an object with a queue cannot be")

	// What a user may change of a queued object, and its end.
	if err := patch("stamped", `{"spec":{"rayVersion":"2.54.0"}}`); err != nil {
		t.Errorf("the owner changes its queued object: %v", err)
	}
	if err := mallory.Resource(rayClusters).Namespace(w.Namespace).Delete(t.Context(), "stamped", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	w.create(vip, forged("own", queued, ""))
	w.hasState("own", "queued", "")
}

// hasState waits until the annotations of the object have a state, and why.
func (w *tenants) hasState(name, state, why string) {
	w.t.Helper()
	var found *unstructured.Unstructured
	w.until(name+" is "+state, func() bool {
		var err error
		if found, err = w.Dynamic.Resource(rayClusters).Namespace(w.Namespace).Get(w.t.Context(), name, metav1.GetOptions{}); err != nil {
			w.t.Fatal(err)
		}
		return found.GetAnnotations()["muster.dev/state"] == state
	})
	if reason := found.GetAnnotations()["muster.dev/reason"]; !strings.Contains(reason, why) {
		w.t.Errorf("%s is %s because %q, want %q", name, state, reason, why)
	}
}
