package door

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/appwrapper"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
)

// Annotations on a held object that say how it stands.
const (
	stateKey  = "muster.dev/state"
	reasonKey = "muster.dev/reason"
)

// lookRay does the next step for a RayJob or RayCluster with a queue label.
func (d *Door) lookRay(ctx context.Context, object *unstructured.Unstructured, k known) (time.Duration, error) {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend") // absent reads as false
	held := object.GetAnnotations()[kube.HeldKey] == string(object.GetUID())
	switch {
	case metav1.GetControllerOfNoCopy(object) != nil:
		return 0, nil // of a RayJob
	case object.GetLabels()[kube.WorkloadLabel] != "" && !held:
		return 0, nil // created by a dispatcher, whatever else is written on it
	case !suspended && !held && !hasFinalizer(object):
		return 0, nil // never held
	}
	id, queue := d.ID(string(object.GetUID())), queueOf(object)
	if object.GetDeletionTimestamp() != nil {
		return d.deleteRay(ctx, object, id, queue, k)
	}
	if !hasFinalizer(object) {
		return 0, d.cluster.SetFinalizer(ctx, object, true) // the change leads here again
	}
	if err := d.fate(ctx, id, &k); err != nil {
		return 0, err
	}
	switch {
	case k.rejected != nil:
		return 0, d.say(ctx, object, id, k, "rejected", k.rejected)
	case k.record != nil:
		d.note(id, func(kept *known) { kept.queue = queue })
		return 0, d.say(ctx, object, id, k, string(k.record.Phase), k.record.Reason)
	case ended(object.GetAnnotations()[stateKey]):
		return 0, nil // it was said, and queue-manager may have forgotten it since
	}
	user, err := d.creator(ctx, object, stampsHeld)
	if err != nil {
		return 0, err
	}
	type reading struct {
		submitted *event.WorkloadSubmitted
		warnings  []string
	}
	read, refused, err := bounded(ctx, d.options.Budget, object, func(object *unstructured.Unstructured) (r reading, err error) {
		r.submitted, r.warnings, err = heldWorkload(d.options.Operator, object, id, queue, user)
		return r, err
	})
	if err != nil {
		return 0, err
	}
	if refused != nil {
		reason := &workload.Reason{Kind: workload.ReasonInvalid, Message: refused.Error()}
		d.note(id, func(kept *known) { kept.rejected = reason })
		return 0, d.say(ctx, object, id, k, "rejected", reason)
	}
	submitted := read.submitted
	submitted.Workload.Submitter = d.submitterName(user)
	if !k.warned {
		for _, warning := range read.warnings {
			if err := d.cluster.Tell(ctx, object, true, "MusterWarning", warning); err != nil {
				return 0, err
			}
		}
	}
	return d.submit(ctx, submitted, &k)
}

func ended(state string) bool { return state == "rejected" || workload.Phase(state).Final() }

func queueOf(object *unstructured.Unstructured) string {
	labels := object.GetLabels()
	if queue := labels[appwrapper.QueueLabel]; queue != "" {
		return queue
	}
	return labels[appwrapper.KueueQueueLabel]
}

// notSubmitted are the annotations that Kubernetes' tools and Muster write.
var notSubmitted = []string{kube.HeldKey, kube.IdentityKey, stateKey, reasonKey, "kubectl.kubernetes.io/last-applied-configuration"}

// heldWorkload reads the object as it would be if nobody held it, with the user who
// created it; the warnings name what is most likely not meant.
func heldWorkload(operator ray.Operator, object *unstructured.Unstructured, id workload.ID, queue string, user *workload.Identity) (submitted *event.WorkloadSubmitted, warnings []string, err error) {
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
	annotations[kube.HeldKey] = string(object.GetUID())
	// A policy of before stamped no groups: without them the rights of the user are
	// not known.
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

// say writes how the workload stands on the object: as annotations, which
// describe and scripts can read, and as an event when it is news.
func (d *Door) say(ctx context.Context, object *unstructured.Unstructured, id workload.ID, k known, state string, reason *workload.Reason) error {
	why := ""
	if reason != nil {
		why = reason.Message
	}
	annotations := object.GetAnnotations()
	if annotations[stateKey] == state && annotations[reasonKey] == why {
		return nil
	}
	if err := d.cluster.Annotate(ctx, object, map[string]string{stateKey: state, reasonKey: why}); err != nil {
		return err
	}
	said := state
	if reason != nil {
		said += string(reason.Kind) // amounts alone are no news
	}
	if k.told == said {
		return nil
	}
	d.note(id, func(kept *known) { kept.told = said })
	warning := state == "rejected" || state == string(workload.Failed) || state == string(workload.Evicting)
	if why == "" {
		why = "workload " + string(id) + " is " + state
	}
	return d.cluster.Tell(ctx, object, warning, "Muster"+state2reason(state), why)
}

// state2reason makes a word of an event of a phase: queued is Queued.
func state2reason(state string) string {
	return string(state[0]-'a'+'A') + state[1:]
}

// deleteRay has the workload cancelled, and lets the object go when queue-manager has
// heard that: its pods are deleted only after it. That they are gone is seen by the
// dispatcher.
func (d *Door) deleteRay(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k known) (time.Duration, error) {
	if !hasFinalizer(object) {
		return 0, nil
	}
	if err := d.fate(ctx, id, &k); err != nil {
		return 0, err
	}
	forgotten := k.record == nil && ended(object.GetAnnotations()[stateKey])
	if !forgotten {
		how, again, err := d.cancel(ctx, id, queue, k.key.String()+" was deleted", &k)
		if err != nil || how == cancelUnheard {
			return again, err
		}
	}
	return 0, d.cluster.SetFinalizer(ctx, object, false)
}
