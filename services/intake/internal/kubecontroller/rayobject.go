package kubecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Annotations with the state of a suspended object's workload.
const (
	stateKey  = "muster.dev/state"
	reasonKey = "muster.dev/reason"
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
		return 0, c.cluster.SetFinalizer(ctx, object, true) // the change enqueues the object again
	}
	if err := c.lookUp(ctx, id, &k); err != nil {
		return 0, err
	}
	switch {
	case k.rejected != nil:
		return 0, c.writeState(ctx, object, id, k, "rejected", k.rejected)
	case k.record != nil:
		c.note(id, func(kept *tracked) { kept.queue = queue })
		return 0, c.writeState(ctx, object, id, k, string(k.record.Phase), k.record.Reason)
	case ended(object.GetAnnotations()[stateKey]):
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
		return 0, c.writeState(ctx, object, id, k, "rejected", reason)
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
var notSubmitted = []string{kube.SuspendedUIDKey, kube.IdentityKey, stateKey, reasonKey, "kubectl.kubernetes.io/last-applied-configuration"}

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
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kube.SuspendedUIDKey] = string(object.GetUID())
	// Older policies stamped no groups, without which the user's rights are unknown.
	if _, known := annotations[groupsKey]; user != nil && known {
		identity, err := json.Marshal(user)
		if err != nil {
			return nil, nil, err
		}
		annotations[kube.IdentityKey] = string(identity)
	}
	plain.SetAnnotations(annotations)
	manifest, err := json.Marshal(plain.Object)
	if err != nil {
		return nil, nil, err
	}
	labels, _, err := unstructured.NestedMap(object.Object, "metadata", "labels")
	if err != nil {
		return nil, nil, err
	}
	return &event.WorkloadSubmitted{Manifest: manifest, PriorityClass: appwrapper.PriorityClassOf(labels), Workload: workload.Workload{
		ID: id, Queue: queue, Namespace: read.Namespace, Kind: read.Kind, Name: read.Name,
		Digest: hex.EncodeToString(digest[:16]), PodSets: read.PodSets, Life: read.Life,
	}}, read.Warnings, nil
}

// writeState writes the workload's state on the object as annotations, and records an
// event if the state or its kind of reason has changed.
func (c *Controller) writeState(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked, state string, reason *workload.Reason) error {
	why := ""
	if reason != nil {
		why = reason.Message
	}
	annotations := object.GetAnnotations()
	if annotations[stateKey] == state && annotations[reasonKey] == why {
		return nil
	}
	if err := c.cluster.Annotate(ctx, object, map[string]string{stateKey: state, reasonKey: why}); err != nil {
		return err
	}
	return c.recordEvent(ctx, object, id, k, state, reason)
}

// recordEvent records an event if the state of the workload or its kind of reason has changed.
func (c *Controller) recordEvent(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k tracked, state string, reason *workload.Reason) error {
	occurrence, why := state, ""
	if reason != nil {
		occurrence += string(reason.Kind) // a change of amounts alone is no event
		why = reason.Message
	}
	if k.lastEvent == occurrence {
		return nil
	}
	c.note(id, func(kept *tracked) { kept.lastEvent = occurrence })
	warning := state == "rejected" || state == string(workload.Failed) || state == string(workload.Evicting) || alarming(reason)
	if why == "" {
		why = "workload " + string(id) + " is " + state
	}
	return c.cluster.RecordEvent(ctx, object, warning, eventReason(state), why)
}

// alarming reports whether a reason of a workload that waits or runs wants the attention of
// its owner.
func alarming(reason *workload.Reason) bool {
	if reason == nil {
		return false
	}
	switch reason.Kind {
	case workload.ReasonNeverFits, workload.ReasonNodeNotReady, workload.ReasonHeadReplaced, workload.ReasonPodLost, workload.ReasonNodeLost:
		return true
	}
	return false
}

// eventReason is the reason of the event that reports a state, such as MusterQueued.
func eventReason(state string) string {
	if state == "" {
		return "Muster"
	}
	return "Muster" + strings.ToUpper(state[:1]) + state[1:]
}

// deleteRay cancels the workload, and removes the finalizer once queue-manager has
// confirmed that: Kubernetes deletes the pods only after the object. The dispatcher
// confirms their end.
func (c *Controller) deleteRay(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k tracked) (time.Duration, error) {
	if !hasFinalizer(object) {
		return 0, nil
	}
	if err := c.lookUp(ctx, id, &k); err != nil {
		return 0, err
	}
	forgotten := k.record == nil && ended(object.GetAnnotations()[stateKey])
	if !forgotten {
		how, again, err := c.cancel(ctx, id, queue, k.key.String()+" was deleted", &k)
		if err != nil || how == cancelUnheard {
			return again, err
		}
	}
	return 0, c.cluster.SetFinalizer(ctx, object, false)
}
