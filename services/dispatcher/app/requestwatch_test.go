package app_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// TestRequestsForNodesAreWatched: with the rights of the service, each change of a request
// for nodes has its workload looked at.
func TestRequestsForNodesAreWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "requests-watched", 0)
	client, err := kubernetes.Connect(w.kubeconfig, w.namespace, &lease.Guard{}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan workload.ID, 100)
	watch, err := client.StartWatch(t.Context(), func(id workload.ID) {
		if id == "asks" {
			changes <- id
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	changed := func(after string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(patience):
			t.Fatalf("the workload is not looked at after %s; requests are watched: %t", after, watch.WatchesRequests())
		}
	}
	requests := w.objects.Resource(schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}).Namespace(w.namespace)
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
		"metadata": map[string]any{"name": "one", "labels": map[string]any{kube.ClusterLabel: w.namespace, kube.WorkloadLabel: "asks"}},
		"spec": map[string]any{
			"provisioningClassName": "requests-watched.example.com",
			"podSets":               []any{map[string]any{"count": int64(1), "podTemplateRef": map[string]any{"name": "none"}}},
		},
	}}
	request, err = requests.Create(t.Context(), request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed("its creation")
	request.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Provisioned", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	if _, err := requests.UpdateStatus(t.Context(), request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	changed("a condition")
	if err := requests.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	changed("its deletion")
	if !watch.WatchesRequests() {
		t.Error("requests are not watched")
	}
}
