package install

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/deploy/crd"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/kube/apiserver"
)

// crdsServed bounds the wait until a new definition is served.
const crdsServed = 30 * time.Second

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installDefinitions applies the definitions of intake's Kubernetes controller. It leaves one
// from another installation, such as the AppWrapper operator's, as it is.
func installDefinitions(ctx context.Context, client dynamic.Interface) error {
	for _, document := range crd.Documents() {
		name, err := nameOf(document)
		if err != nil {
			return err
		}
		present, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && present.GetLabels()[managedBy] != manager:
			continue
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("read definition %s: %w", name, err)
		}
		if err := apply(ctx, client, document); err != nil {
			return err
		}
		if err := awaitServed(ctx, client, name); err != nil {
			return err
		}
	}
	return nil
}

// probes are objects of each kind that the admission policies concern, by resource. They are
// created in a dry run, and refused.
func probes() map[schema.GroupVersionResource]*unstructured.Unstructured {
	probe := func(version, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "spec": map[string]any{},
			"metadata": map[string]any{"name": "probe", "labels": map[string]any{"muster.dev/queue-name": "probe"}},
		}}
	}
	ray := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: resource}
	}
	return map[schema.GroupVersionResource]*unstructured.Unstructured{
		{Group: "workload.codeflare.dev", Version: "v1beta1", Resource: "appwrappers"}: probe("workload.codeflare.dev/v1beta1", "AppWrapper"),
		ray("rayclusters"): probe("ray.io/v1", "RayCluster"),
		ray("rayjobs"):     probe("ray.io/v1", "RayJob"),
	}
}

// awaitCreations returns when objects can be created: for some seconds the policies of the API
// server do not know the types of new definitions. The API server reads the schemas of a kind for
// its policies, which takes seconds, when the first object of it is created; here that is a probe
// and not the first object of a user.
func awaitCreations(ctx context.Context, client dynamic.Interface) error {
	for resource, probe := range probes() {
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, crdsServed, true, func(ctx context.Context) (bool, error) {
			_, err := client.Resource(resource).Namespace(rbac.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apiserver.Decided(err), nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s can be created: %w", resource.GroupResource(), err)
		}
	}
	return nil
}

// The label of what Muster installs.
const (
	managedBy = "app.kubernetes.io/managed-by"
	manager   = "muster"
)

func installed(ctx context.Context, client dynamic.Interface, name string) (bool, error) {
	_, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read definition %s: %w", name, err)
	}
	return true, nil
}

func awaitServed(ctx context.Context, client dynamic.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, crdsServed, true, func(ctx context.Context) (bool, error) {
		found, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions") // absent reads as empty
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for definition %s to be served: %w", name, err)
	}
	return nil
}
