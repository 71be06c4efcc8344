package kubecontroller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Annotations that the API server stamps on an AppWrapper (deploy/policy).
const (
	userKey   = "muster.dev/user"
	uidKey    = "muster.dev/user-uid"
	groupsKey = "muster.dev/user-groups" // one in each line
)

// reconcileWrapper takes the next step for an AppWrapper.
func (c *Controller) reconcileWrapper(ctx context.Context, object *unstructured.Unstructured, k tracked) (time.Duration, error) {
	id := c.ID(string(object.GetUID()))
	wrapper, refused, err := bounded(ctx, c.options.Budget, object, func(object *unstructured.Unstructured) (appwrapper.Wrapper, error) {
		return appwrapper.Read(c.options.Operator, object.Object)
	})
	if err != nil {
		return 0, err
	}
	queue := wrapper.Queue
	if queue == "" {
		queue = c.options.DefaultQueue
	}
	if object.GetDeletionTimestamp() != nil {
		return c.deleteWrapper(ctx, object, id, queue, k)
	}
	if !hasFinalizer(object) {
		return c.addFinalizer(ctx, object, id)
	}
	view := appwrapper.View{Created: object.GetCreationTimestamp().Time, Warnings: wrapper.Warnings, Pods: k.pods, Now: time.Now()}
	old, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	again := time.Duration(0)
	switch {
	case refused != nil:
		view.Rejected = &workload.Reason{Kind: workload.ReasonInvalid, Message: refused.Error()}
	case rejectedBefore(old):
		return 0, nil // the status has it, and a rejection is final
	default:
		var err error
		if again, err = c.progress(ctx, object, wrapper, id, queue, endedBefore(old), &k); err != nil {
			return 0, err
		}
		if k.record == nil && k.rejected == nil && endedBefore(old) {
			return c.expire(ctx, object, successTTL(wrapper, k.record), old)
		}
		view.Record, view.Rejected = k.record, k.rejected
	}
	// Before queue-manager has answered, the status is the default that its schema gives.
	known := view.Record != nil || view.Rejected != nil
	if _, changed := appwrapper.Status(wrapper.Version, old, view); changed && known {
		c.askForMark(id)
		return again, nil
	}
	if again > 0 {
		return again, nil
	}
	return c.expire(ctx, object, successTTL(wrapper, k.record), old)
}

// successTTL is how long an AppWrapper stays after its success; nil is for ever. The
// queue's limit was checked against the submitted time, so a changed annotation may
// shorten it but not lengthen it.
func successTTL(wrapper appwrapper.Wrapper, record *workload.Record) *time.Duration {
	if wrapper.SuccessTTL == nil || record == nil || record.Life.Tolerance == nil || record.Life.Tolerance.SuccessTTL == 0 {
		return wrapper.SuccessTTL
	}
	shorter := min(*wrapper.SuccessTTL, time.Duration(record.Life.Tolerance.SuccessTTL))
	return &shorter
}

// expire deletes an AppWrapper whose ttl after its success has passed; nil is for ever.
// The status has the time of the success, so every instance agrees on it.
func (c *Controller) expire(ctx context.Context, object *unstructured.Unstructured, ttl *time.Duration, status map[string]any) (time.Duration, error) {
	since, succeeded := appwrapper.SucceededAt(status)
	if !succeeded || ttl == nil {
		return 0, nil
	}
	if left := *ttl - time.Since(since); left > 0 {
		return left, nil
	}
	return 0, c.cluster.Delete(ctx, object)
}

// rejectedBefore reports whether the status means that the AppWrapper was refused.
func rejectedBefore(status map[string]any) bool { return status["rejected"] == true }

// endedBefore reports whether the status means that the workload has ended;
// queue-manager may have forgotten it since.
func endedBefore(status map[string]any) bool {
	switch status["phase"] {
	case "Succeeded", "Failed", "Terminating":
		return true
	}
	return false
}

// progress looks up the workload, and submits it if queue-manager does not have it.
func (c *Controller) progress(ctx context.Context, object *unstructured.Unstructured, wrapper appwrapper.Wrapper, id workload.ID, queue string, ended bool, k *tracked) (time.Duration, error) {
	if err := c.lookUpUnlessNew(ctx, object, id, k); err != nil {
		return 0, err
	}
	if k.record != nil || k.rejected != nil || ended {
		c.note(id, func(kept *tracked) { kept.queue = queue })
		return 0, nil
	}
	user, err := c.creator(ctx, object, stampsWrappers)
	if err != nil {
		return 0, err
	}
	wrapper.Bundle.Submitter = user
	wrapper.Bundle.Owner = &bundle.Owner{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: string(object.GetUID())}
	if reason, err := c.refusal(ctx, object, wrapper, queue, user); reason != nil || err != nil {
		k.rejected = reason
		c.note(id, func(kept *tracked) { kept.rejected = reason })
		return 0, err
	}
	manifest, err := wrapper.Manifest()
	if err != nil {
		return 0, err
	}
	digest, err := digestOf(queue, wrapper.Bundle)
	if err != nil {
		return 0, err
	}
	return c.submit(ctx, &event.WorkloadSubmitted{Manifest: manifest, PriorityClass: wrapper.PriorityClass, Workload: workload.Workload{
		ID: id, Queue: queue, Namespace: object.GetNamespace(), Kind: appwrapper.Kind, Name: object.GetName(),
		Priority: wrapper.Priority, Digest: digest, PodSets: wrapper.PodSets, Life: wrapper.Life, Submitter: c.submitterName(user),
	}}, k)
}

// digestOf identifies the content of an AppWrapper's submission. It leaves the owner
// out: the id identifies the object already, and an older intake, whose submission may
// arrive as well, does not write the owner.
func digestOf(queue string, asked bundle.Bundle) (string, error) {
	asked.Owner = nil
	manifest, err := asked.Encode()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(append([]byte(queue+"\x00"), manifest...))
	return hex.EncodeToString(digest[:16]), nil
}

// refusal returns why the AppWrapper is not submitted, nil if it is: its queue's name
// is invalid, or its user may not create the wrapped objects.
func (c *Controller) refusal(ctx context.Context, object *unstructured.Unstructured, wrapper appwrapper.Wrapper, queue string, user *bundle.Submitter) (*workload.Reason, error) {
	invalid := func(message string) (*workload.Reason, error) {
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: message}, nil
	}
	if !workload.ValidName(queue) {
		return invalid(fmt.Sprintf("metadata.labels[%s]: %q names no queue; want at most 63 lower-case letters, digits and dashes", appwrapper.QueueLabel, queue))
	}
	if user == nil {
		return invalid("its creator is unknown, and so are the creator's rights; install Muster's admission policies (Kubernetes 1.36 or later) and create it again")
	}
	for i, item := range wrapper.Bundle.Items {
		wrapped, err := item.Identity()
		if err != nil {
			return nil, err
		}
		wrapped.Namespace = object.GetNamespace()
		why, err := c.cluster.Allowed(ctx, *user, wrapped)
		switch {
		case meta.IsNoMatchError(err):
			return invalid(fmt.Sprintf("wrapped object %d: the cluster serves no kind %s of %s; install its definition first", i, wrapped.Kind, wrapped.APIVersion))
		case err != nil:
			return nil, err
		case why != "":
			return invalid(fmt.Sprintf("wrapped object %d: %s", i, why))
		}
	}
	return nil, nil
}

// deleteWrapper cancels the workload, and removes the finalizer once nothing of it is
// left.
func (c *Controller) deleteWrapper(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k tracked) (time.Duration, error) {
	if !hasFinalizer(object) {
		return 0, nil
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	if !rejectedBefore(status) {
		how, again, err := c.cancel(ctx, id, queue, k.key.String()+" was deleted", &k)
		if err != nil || how != cancelDone {
			return again, err
		}
	}
	if err := c.cluster.SetFinalizer(ctx, object, false); err != nil {
		return 0, err
	}
	c.forget(id)
	return 0, nil
}
