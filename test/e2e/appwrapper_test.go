package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/test/stack"
)

// beside are the objects of stack.Beside.
func beside(name string) map[string]schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		name + "-config":  {Version: "v1", Resource: "configmaps"},
		name + "-secret":  {Version: "v1", Resource: "secrets"},
		name + "-service": {Version: "v1", Resource: "services"},
		name + "-web":     {Group: "apps", Version: "v1", Resource: "deployments"},
	}
}

// there returns which of the objects exist in the world's namespace.
func (w *world) there(objects map[string]schema.GroupVersionResource) []string {
	w.t.Helper()
	var found []string
	for name, resource := range objects {
		_, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err == nil {
			found = append(found, name)
		} else if !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
	}
	return found
}

// A workload of several objects: nothing of it exists while it waits, all of it
// when it runs, each pod on its place, and nothing when it was cancelled.
func TestAnAppWrapperIsCreatedWholeAndRemovedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=2")
	first := w.submit(stack.RayCluster("first", 1, 2))
	w.reaches(first, workload.Running)

	wrapped := w.submit(stack.AppWrapper(w.Namespace, "wrapper", append(stack.Beside("wrapper"), stack.RayCluster("wrapped", 1, 2))...))
	w.waits(wrapped, workload.ReasonFit)
	w.nothingOf(wrapped)
	if found := w.there(beside("wrapper")); len(found) > 0 {
		t.Errorf("while it waits there are %v", found)
	}

	w.cancel(first)
	w.reaches(wrapped, workload.Running)
	w.asPlanned(wrapped)
	if found := w.there(beside("wrapper")); len(found) != 4 {
		t.Errorf("when it runs there are only %v", found)
	}
	if pods := w.pods(wrapped); len(pods) != 4 {
		t.Errorf("it has %d pods, want head, worker and two of the Deployment", len(pods))
	}

	w.cancel(wrapped)
	w.reaches(wrapped, workload.Cancelled)
	w.nothingOf(wrapped)
	if found := w.there(beside("wrapper")); len(found) > 0 {
		t.Errorf("after it was cancelled there are %v", found)
	}
}

// When Kubernetes refuses one object, those before it are taken back before the
// workload is said to have failed.
func TestAnAppWrapperWithARefusedObjectLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=2")
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999999}]}\n"
	objects := append([]string{stack.RayCluster("rolled-back", 1, 1)}, append(stack.Beside("rolled-back"), bad)...)
	id := w.submit(stack.AppWrapper(w.Namespace, "rolled-back", objects...))
	reason := w.reaches(id, workload.Failed).Reason
	for _, part := range []string{w.Namespace + "/rolled-back creation failure: Service bad", "99999999"} {
		if !strings.Contains(reason.Message, part) {
			t.Errorf("the reason lacks %q: %s", part, reason.Message)
		}
	}
	w.nothingOf(id)
	if found := w.there(beside("rolled-back")); len(found) > 0 {
		t.Errorf("after the refusal there are %v", found)
	}
	w.released(id)
}
