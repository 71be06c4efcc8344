package e2e

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/test/stack"
)

// rayClusters is what kubectl would use.
func (w *world) rayClusters() dynamic.ResourceInterface {
	return w.Dynamic.Resource(ray.Resource("rayclusters")).Namespace(w.Namespace)
}

// createByHand creates a RayCluster that is not Muster's, with pods that ask for
// a place that no node has.
func (w *world) createByHand(name string) {
	w.t.Helper()
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(stack.RayCluster(name, 1, 64)), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.rayClusters().Create(w.ctx, &object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
