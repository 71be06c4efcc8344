package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
)

// ErrNotSuspended is wrapped when an object that was to be released is not suspended.
var ErrNotSuspended = errors.New("is no longer suspended, and Muster did not release it")

// Release writes a stamped manifest into the suspended object with the UID and
// lifts the suspension, in one write. It reports false when that object is gone.
func (c *Client) Release(ctx context.Context, kind, uid string, manifest json.RawMessage) (done bool, err error) {
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest, &wanted.Object); err != nil {
		return false, fmt.Errorf("read stamped %s: %w", kind, err)
	}
	objects := c.objects.Resource(resources[kind]).Namespace(wanted.GetNamespace())
	live, err := objects.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s %s/%s: %w", kind, wanted.GetNamespace(), wanted.GetName(), err)
	}
	if string(live.GetUID()) != uid || live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend") // absent reads as false
	marks := []string{kube.WorkloadLabel, kube.ClusterLabel, kube.AttemptLabel}
	if !suspended {
		for _, mark := range marks {
			if live.GetLabels()[mark] != wanted.GetLabels()[mark] {
				return false, fmt.Errorf("%s %s/%s %w", kind, wanted.GetNamespace(), wanted.GetName(), ErrNotSuspended)
			}
		}
		return true, nil // released before a restart
	}
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, mark := range append(marks, kube.QueueLabel) {
		labels[mark] = wanted.GetLabels()[mark] // it has the label of its queue
	}
	maps.Copy(annotations, map[string]string{kube.EpochKey: wanted.GetAnnotations()[kube.EpochKey], kube.SuspendedUIDKey: uid})
	live.SetLabels(labels)
	live.SetAnnotations(annotations)
	live.Object["spec"] = wanted.Object["spec"]
	if err := unstructured.SetNestedField(live.Object, false, "spec", "suspend"); err != nil {
		return false, fmt.Errorf("release %s %s/%s: %w", kind, wanted.GetNamespace(), wanted.GetName(), err)
	}
	if _, err := objects.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("release %s %s/%s: %w", kind, wanted.GetNamespace(), wanted.GetName(), err)
	}
	return true, nil
}

// suspend suspends an object again and takes the workload's marks off it, in one
// write: what it has made goes, and it waits for the next attempt.
func (c *Client) suspend(ctx context.Context, o Object) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": o.UID, "labels": map[string]any{
			kube.WorkloadLabel: nil, kube.ClusterLabel: nil, kube.AttemptLabel: nil, kube.QueueLabel: nil,
		}},
		"spec": map[string]any{"suspend": true},
	})
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", o.Kind, o.Name, err)
	}
	_, err = c.objects.Resource(resources[o.Kind]).Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("suspend %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return nil
}
