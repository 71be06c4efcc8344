package clusters

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

var rayClusters = ray.Resource("rayclusters")

// create makes a RayCluster with a queue label in a cluster, as kubectl would.
func (w *world) create(client dynamic.Interface, manifest, queue string) {
	w.t.Helper()
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(manifest), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	object.SetLabels(map[string]string{kube.QueueNameLabel: queue})
	if _, err := client.Resource(rayClusters).Namespace(w.Namespace).Create(w.t.Context(), &object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// object waits until a RayCluster in a cluster is as expected.
func (w *world) object(client dynamic.Interface, name, what string, is func(*unstructured.Unstructured) bool) {
	w.t.Helper()
	w.until("RayCluster "+name+" "+what, func() bool {
		found, err := client.Resource(rayClusters).Namespace(w.Namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false
		}
		if err != nil {
			w.t.Fatal(err)
		}
		return is(found)
	})
}

// gone waits until a RayCluster is deleted.
func (w *world) gone(client dynamic.Interface, name string) {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	if err := client.Resource(rayClusters).Namespace(w.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("RayCluster "+name+" is gone", func() bool {
		_, err := client.Resource(rayClusters).Namespace(w.Namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// named returns the workloads of a name.
func (w *world) named(name string) []workload.Record {
	w.t.Helper()
	answer, err := w.Queries.Workloads(w.t.Context(), query.WorkloadsRequest{Name: name, Namespace: w.Namespace})
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Workloads
}

func stateIs(state string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[kube.StateKey] == state }
}

// What users make with kubectl in a further cluster is held, runs there when there is room, and
// frees its places when it is deleted. An object of the same name in the first cluster is another
// workload, and one for a queue that the further cluster does not have is rejected.
func TestKubectlInAFurtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{}, "default")
	w.nodes(1, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.create(w.second.Dynamic, stack.RayCluster("pair", 1, 2), "default")
	w.object(w.second.Dynamic, "pair", "runs", func(u *unstructured.Unstructured) bool {
		pods, _, _ := unstructured.NestedString(u.Object, "status", "state") // absent reads as empty
		return stateIs(kube.StateAdmitted)(u) && pods == "ready"
	})
	first := w.named("pair")
	if len(first) != 1 || first[0].Home() != w.second.Name || first[0].Cluster != w.second.Name {
		t.Fatalf("the workloads are %+v, want one at home and placed in %s", first, w.second.Name)
	}
	w.runsIn(first[0].ID, 1, w.second.Name)

	w.create(w.Dynamic, stack.RayCluster("pair", 1, 2), "default")
	w.object(w.Dynamic, "pair", "is admitted", stateIs(kube.StateAdmitted))
	if both := w.named("pair"); len(both) != 2 {
		t.Errorf("the same name in two clusters is %d workloads, want 2", len(both))
	}

	w.create(w.second.Dynamic, stack.RayCluster("waits", 1, 2), "default")
	w.object(w.second.Dynamic, "waits", "waits for its own cluster", stateIs(string(workload.Queued)))
	w.create(w.second.Dynamic, stack.RayCluster("elsewhere", 1, 2), "other")
	w.object(w.second.Dynamic, "elsewhere", "is rejected", stateIs("rejected"))
	w.gone(w.second.Dynamic, "elsewhere")

	w.gone(w.second.Dynamic, "pair")
	w.object(w.second.Dynamic, "waits", "is admitted", stateIs(kube.StateAdmitted))
	if record := w.one(first[0].ID); record.Phase != workload.Cancelled || record.Holding {
		t.Errorf("the workload of the deleted object is %s, holding %t", record.Phase, record.Holding)
	}
}
