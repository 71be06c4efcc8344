package kubecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
)

// finalizer keeps an object until its workload has been torn down. The policies that hold
// objects at their creation add it where intake may remove it (deploy/policy).
const finalizer = kube.WorkloadFinalizer

func hasFinalizer(object *unstructured.Unstructured) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

// patch changes exactly the object that was read. If it is gone that is no error: the
// watch reports it.
func (c *Client) patch(ctx context.Context, object *unstructured.Unstructured, content map[string]any, subresources ...string) error {
	encoded, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return c.send(ctx, object, types.MergePatchType, encoded, subresources...)
}

func (c *Client) send(ctx context.Context, object *unstructured.Unstructured, kind types.PatchType, patch []byte, subresources ...string) error {
	_, err := c.objects.Resource(resourceOf(object)).Namespace(object.GetNamespace()).
		Patch(ctx, object.GetName(), kind, patch, metav1.PatchOptions{}, subresources...)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// SetFinalizer adds or removes the controller's finalizer. An addition fails if the object
// has changed since it was read, because others have finalizers, too. A removal fails if
// others have changed the finalizers.
func (c *Client) SetFinalizer(ctx context.Context, object *unstructured.Unstructured, there bool) error {
	if there {
		return c.patch(ctx, object, map[string]any{"metadata": map[string]any{
			"resourceVersion": object.GetResourceVersion(), "finalizers": append(object.GetFinalizers(), finalizer),
		}})
	}
	at := fmt.Sprintf("/metadata/finalizers/%d", slices.Index(object.GetFinalizers(), finalizer))
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": object.GetUID()},
		{"op": "test", "path": at, "value": finalizer},
		{"op": "remove", "path": at},
	})
	if err != nil {
		return fmt.Errorf("encode patch of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return c.send(ctx, object, types.JSONPatchType, patch)
}

// WriteStatus merges into the status; fields of others stay.
func (c *Client) WriteStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error {
	return c.patch(ctx, object, map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": status}, "status")
}

// ReplaceStatus replaces the whole status of exactly the object that was read.
func (c *Client) ReplaceStatus(ctx context.Context, object *unstructured.Unstructured, status map[string]any) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": object.GetUID()}, {"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return fmt.Errorf("encode patch of the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return c.send(ctx, object, types.JSONPatchType, patch, "status")
}

// Annotate sets annotations of the object.
func (c *Client) Annotate(ctx context.Context, object *unstructured.Unstructured, annotations map[string]string) error {
	return c.patch(ctx, object, map[string]any{"metadata": map[string]any{"uid": object.GetUID(), "annotations": annotations}})
}

// Delete deletes exactly the object that was read; a missing one is no error.
func (c *Client) Delete(ctx context.Context, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	background := metav1.DeletePropagationBackground
	err := c.objects.Resource(resourceOf(object)).Namespace(object.GetNamespace()).Delete(ctx, object.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// RecordEvent records an event of the object.
func (c *Client) RecordEvent(ctx context.Context, object *unstructured.Unstructured, warning bool, reason, message string) error {
	const longest = 1000 // the API server takes 1024 bytes
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "..."
	}
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	now := metav1.NewTime(time.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), GenerateName: object.GetName() + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		Reason: reason, Message: message, Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "muster"},
	}
	_, err := c.core.CoreV1().Events(object.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) { // forbidden if the namespace is terminating
		return fmt.Errorf("record event %s of %s %s: %w", reason, object.GetKind(), object.GetName(), err)
	}
	return nil
}
