package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// GiveUp makes worker groups of exactly this RayCluster smaller, and names the pods that
// KubeRay is to delete (its scaleStrategy). The patch fails when the groups have changed.
func (c *Client) GiveUp(ctx context.Context, o Object, sizes map[string]int, pods map[string][]string) error {
	objects := c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace)
	object, err := objects.Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	if err != nil {
		return fmt.Errorf("read the worker groups of %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	patch := []operation{{"test", "/metadata/uid", o.UID}}
	for i, item := range groups {
		group, _ := item.(map[string]any)
		name, _ := group["groupName"].(string)
		size, given := sizes[name]
		if !given {
			continue
		}
		at := fmt.Sprintf("/spec/workerGroupSpecs/%d/", i)
		patch = append(patch, operation{"test", at + "groupName", name}, operation{"add", at + "replicas", size})
		if least, _, _ := unstructured.NestedInt64(group, "minReplicas"); least > int64(size) { // absent reads as 0
			patch = append(patch, operation{"add", at + "minReplicas", size})
		}
		if len(pods[name]) > 0 {
			patch = append(patch, operation{"add", at + "scaleStrategy", map[string]any{"workersToDelete": pods[name]}})
		}
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", o.Kind, o.Name, err)
	}
	if _, err := objects.Patch(ctx, o.Name, types.JSONPatchType, encoded, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("make %s %s/%s smaller: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}
