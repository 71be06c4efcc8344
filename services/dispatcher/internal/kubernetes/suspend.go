package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"muster.dev/muster/pkg/kube"
)

// ErrNotSuspended is wrapped when an object that was to be released is not suspended.
var ErrNotSuspended = errors.New("is no longer suspended, and Muster did not release it")

// Release writes a stamped manifest into the suspended object with the UID and lifts the
// suspension. The one write applies only to that object and only while it is suspended. It
// has no resourceVersion, so what others write on the object meanwhile is no conflict. It
// reports false when that object is gone.
func (c *Client) Release(ctx context.Context, kind, uid string, manifest json.RawMessage) (done bool, err error) {
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest, &wanted.Object); err != nil {
		return false, fmt.Errorf("read stamped %s: %w", kind, err)
	}
	objects := c.objects.Resource(resources[kind]).Namespace(wanted.GetNamespace())
	err = applyRelease(ctx, objects, uid, wanted)
	if apierrors.IsInvalid(err) { // a test of the patch failed, or the object is refused
		done, err = releaseAgain(ctx, objects, uid, wanted, err)
	} else {
		done = err == nil
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("release %s %s/%s: %w", kind, wanted.GetNamespace(), wanted.GetName(), err)
	}
	return done, nil
}

// releaseAgain looks at the object that a release did not apply to, because of refused. If
// the object has no labels or annotations yet, it releases it with new ones.
func releaseAgain(ctx context.Context, objects dynamic.ResourceInterface, uid string, wanted *unstructured.Unstructured, refused error) (done bool, err error) {
	live, err := objects.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if string(live.GetUID()) != uid || live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	if suspended, _, _ := unstructured.NestedBool(live.Object, "spec", "suspend"); !suspended { // absent reads as false
		for _, mark := range releaseMarks {
			if live.GetLabels()[mark] != wanted.GetLabels()[mark] {
				return false, ErrNotSuspended
			}
		}
		return true, nil // released before a restart
	}
	var missing []string
	if live.GetLabels() == nil {
		missing = append(missing, "labels")
	}
	if live.GetAnnotations() == nil {
		missing = append(missing, "annotations")
	}
	if len(missing) == 0 {
		return false, refused
	}
	err = applyRelease(ctx, objects, uid, wanted, missing...)
	return err == nil, err
}

// releaseMarks are the labels that identify the attempt for which an object was released.
var releaseMarks = []string{kube.WorkloadLabel, kube.ClusterLabel, kube.AttemptLabel}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// applyRelease patches the object; missing are the maps of its metadata that it lacks.
func applyRelease(ctx context.Context, objects dynamic.ResourceInterface, uid string, wanted *unstructured.Unstructured, missing ...string) error {
	spec, _, err := unstructured.NestedMap(wanted.Object, "spec")
	if err != nil {
		return err
	}
	spec["suspend"] = false
	patch := []operation{
		{"test", "/metadata/uid", uid},
		{"test", "/metadata/deletionTimestamp", nil}, // absent
		{"test", "/spec/suspend", true},
		{"replace", "/spec", spec},
	}
	for _, field := range missing {
		patch = append(patch, operation{"test", "/metadata/" + field, nil}, operation{"add", "/metadata/" + field, map[string]string{}})
	}
	for _, mark := range append(slices.Clone(releaseMarks), kube.QueueLabel) {
		patch = append(patch, operation{"add", "/metadata/labels/" + escaped(mark), wanted.GetLabels()[mark]})
	}
	for _, annotation := range [][2]string{
		{kube.EpochKey, wanted.GetAnnotations()[kube.EpochKey]}, {kube.SuspendedUIDKey, uid},
		{kube.StateKey, kube.StateAdmitted}, {kube.ReasonKey, ""},
	} {
		patch = append(patch, operation{"add", "/metadata/annotations/" + escaped(annotation[0]), annotation[1]})
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = objects.Patch(ctx, wanted.GetName(), types.JSONPatchType, encoded, metav1.PatchOptions{})
	return err
}

// escaped is a key as JSON Pointer has it (RFC 6901).
func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

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
