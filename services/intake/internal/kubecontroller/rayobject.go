package kubecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// reconcileRay takes the next step for a RayJob or RayCluster with a queue label.
func (c *Controller) reconcileRay(ctx context.Context, object *unstructured.Unstructured, k tracked) (time.Duration, error) {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend") // absent reads as false
	released := object.GetAnnotations()[kube.SuspendedUIDKey] == string(object.GetUID())
	switch {
	case metav1.GetControllerOfNoCopy(object) != nil:
		return 0, nil // a RayJob's cluster
	case object.GetLabels()[kube.WorkloadLabel] != "" && !released:
		return 0, nil // created by a dispatcher
	case !suspended && !released && !hasFinalizer(object):
		return 0, nil // never suspended for Muster
	}
	id, queue := c.ID(string(object.GetUID())), queueOf(object)
	if object.GetDeletionTimestamp() != nil {
		return c.deleteRay(ctx, object, id, queue, k)
	}
	if !hasFinalizer(object) {
		return c.addFinalizer(ctx, object, id)
	}
	if err := c.lookUpUnlessNew(ctx, object, id, &k); err != nil {
		return 0, err
	}
	switch {
	case k.rejected != nil:
		c.askForMark(id)
		return 0, nil
	case k.record != nil:
		c.note(id, func(kept *tracked) { kept.queue = queue })
		c.askForMark(id)
		return 0, nil
	case ended(object.GetAnnotations()[kube.StateKey]):
		return 0, nil // the end is on the object; queue-manager may have forgotten the workload
	}
	return c.submitRay(ctx, object, id, queue, k)
}

// submitRay reads an object and submits its workload, or writes on it why it is rejected.
func (c *Controller) submitRay(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k tracked) (time.Duration, error) {
	user, err := c.creator(ctx, object, stampsLabelled)
	if err != nil {
		return 0, err
	}
	type reading struct {
		submitted *event.WorkloadSubmitted
		warnings  []string
	}
	read, refused, err := bounded(ctx, c.options.Budget, object, func(object *unstructured.Unstructured) (r reading, err error) {
		r.submitted, r.warnings, err = labelledWorkload(c.options.Operator, object, id, queue, user)
		return r, err
	})
	if err != nil {
		return 0, err
	}
	if refused != nil {
		reason := &workload.Reason{Kind: workload.ReasonInvalid, Message: refused.Error()}
		c.note(id, func(kept *tracked) { kept.rejected = reason })
		c.askForMark(id)
		return 0, nil
	}
	submitted := read.submitted
	submitted.Workload.Submitter = c.submitterName(user)
	if !k.warned {
		for _, warning := range read.warnings {
			if err := c.cluster.RecordEvent(ctx, object, true, "MusterWarning", warning); err != nil {
				return 0, err
			}
		}
	}
	return c.submit(ctx, submitted, &k)
}

func ended(state string) bool { return state == "rejected" || workload.Phase(state).Final() }

func queueOf(object *unstructured.Unstructured) string {
	labels := object.GetLabels()
	if queue := labels[appwrapper.QueueLabel]; queue != "" {
		return queue
	}
	return labels[kube.KueueQueueLabel]
}

// notSubmitted are annotations of kubectl and Muster, which are no part of a manifest.
var notSubmitted = []string{kube.SuspendedUIDKey, kube.IdentityKey, kube.StateKey, kube.ReasonKey, kube.StartsKey, kube.PositionKey, kube.PlaceKey, kube.StaleKey, "kubectl.kubernetes.io/last-applied-configuration"}

// labelledWorkload reads the object as it will be when it is no longer suspended, with the
// user that created it; the warnings name likely mistakes.
func labelledWorkload(operator ray.Operator, object *unstructured.Unstructured, id workload.ID, queue string, user *workload.Identity) (submitted *event.WorkloadSubmitted, warnings []string, err error) {
	if !workload.ValidName(queue) {
		return nil, nil, fmt.Errorf("metadata.labels[%s]: %q names no queue; want at most 63 lower-case letters, digits and dashes", appwrapper.QueueLabel, queue)
	}
	plain := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "spec": object.DeepCopy().Object["spec"],
	}}
	unstructured.RemoveNestedField(plain.Object, "spec", "suspend")
	moves := movesAway(object)
	if moves {
		unstructured.RemoveNestedField(plain.Object, "spec", "managedBy")
	}
	plain.SetName(object.GetName())
	plain.SetNamespace(object.GetNamespace())
	plain.SetLabels(object.GetLabels())
	annotations := object.GetAnnotations()
	for _, key := range notSubmitted {
		delete(annotations, key)
	}
	plain.SetAnnotations(annotations)
	encoded, err := json.Marshal(plain.Object)
	if err != nil {
		return nil, nil, err
	}
	read, err := operator.Read(encoded)
	if err != nil {
		return nil, nil, err
	}
	digest := sha256.Sum256(append([]byte(queue+"\x00"), read.Manifest...))
	manifest := read.Manifest
	if !moves {
		if manifest, err = releasable(plain, string(object.GetUID()), user); err != nil {
			return nil, nil, err
		}
	}
	read.Life.Moves = moves
	labels, _, err := unstructured.NestedMap(object.Object, "metadata", "labels")
	if err != nil {
		return nil, nil, err
	}
	return &event.WorkloadSubmitted{Manifest: manifest, PriorityClass: appwrapper.PriorityClassOf(labels), Workload: workload.Workload{
		ID: id, Queue: queue, Namespace: read.Namespace, Kind: read.Kind, Name: read.Name,
		Digest: hex.EncodeToString(digest[:16]), PodSets: read.PodSets, Life: read.Life,
	}}, read.Warnings, nil
}

// releasable is the manifest with which the dispatcher finds the suspended object again, and asks
// for the rights of the user that created it.
func releasable(plain *unstructured.Unstructured, uid string, user *workload.Identity) (json.RawMessage, error) {
	annotations := plain.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kube.SuspendedUIDKey] = uid
	// Older policies stamped no groups, without which the user's rights are unknown.
	if _, known := annotations[groupsKey]; user != nil && known {
		identity, err := json.Marshal(user)
		if err != nil {
			return nil, err
		}
		annotations[kube.IdentityKey] = string(identity)
	}
	plain.SetAnnotations(annotations)
	return json.Marshal(plain.Object)
}

// deleteRay cancels the workload, and removes the finalizer once queue-manager has
// confirmed that: Kubernetes deletes the pods only after the object. The dispatcher
// confirms their end. An object that moves stays until nothing runs in its place.
func (c *Controller) deleteRay(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k tracked) (time.Duration, error) {
	if !hasFinalizer(object) {
		return 0, nil
	}
	if err := c.lookUp(ctx, id, &k); err != nil {
		return 0, err
	}
	forgotten := k.record == nil && ended(object.GetAnnotations()[kube.StateKey])
	if !forgotten {
		how, again, err := c.cancel(ctx, id, queue, k.key.String()+" was deleted", &k)
		if err != nil || how == cancelUnheard || how == cancelHeard && movesAway(object) {
			return again, err
		}
	}
	if err := c.cluster.SetFinalizer(ctx, object, false); err != nil {
		return 0, err
	}
	c.note(id, func(kept *tracked) { kept.freed = true })
	return 0, nil
}
