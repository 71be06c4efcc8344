package door

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/appwrapper"
	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// Annotations that the API server stamps on an AppWrapper (deploy/policy).
const (
	userKey   = "muster.dev/user"
	uidKey    = "muster.dev/user-uid"
	groupsKey = "muster.dev/user-groups" // one in each line
)

// lookWrapper does the next step for an AppWrapper.
func (d *Door) lookWrapper(ctx context.Context, object *unstructured.Unstructured, k known) (time.Duration, error) {
	id := d.ID(string(object.GetUID()))
	wrapper, refused, err := bounded(ctx, d.options.Budget, object, func(object *unstructured.Unstructured) (appwrapper.Wrapper, error) {
		return appwrapper.Read(d.options.Operator, object.Object)
	})
	if err != nil {
		return 0, err
	}
	queue := wrapper.Queue
	if queue == "" {
		queue = d.options.DefaultQueue
	}
	if object.GetDeletionTimestamp() != nil {
		return d.deleteWrapper(ctx, object, id, queue, k)
	}
	if !hasFinalizer(object) {
		return 0, d.cluster.SetFinalizer(ctx, object, true) // the change leads here again
	}
	view := appwrapper.View{Created: object.GetCreationTimestamp().Time, Warnings: wrapper.Warnings, Pods: k.pods, Now: time.Now()}
	old, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	again := time.Duration(0)
	switch {
	case refused != nil:
		view.Rejected = &workload.Reason{Kind: workload.ReasonInvalid, Message: refused.Error()}
	case rejectedBefore(old):
		return 0, nil // it was said, and nothing of it can change
	default:
		var err error
		if again, err = d.progress(ctx, object, wrapper, id, queue, endedBefore(old), &k); err != nil {
			return 0, err
		}
		if k.record == nil && k.rejected == nil && endedBefore(old) {
			return d.expire(ctx, object, wrapper, old)
		}
		view.Record, view.Rejected = k.record, k.rejected
	}
	status, changed := appwrapper.Status(wrapper.Version, old, view)
	if !changed && again == 0 {
		return d.expire(ctx, object, wrapper, old)
	}
	if !changed {
		return again, nil
	}
	return again, d.cluster.WriteStatus(ctx, object, status)
}

// expire deletes an AppWrapper that has succeeded for as long as it may stay. The
// moment is in its status, so it is the same for every door.
func (d *Door) expire(ctx context.Context, object *unstructured.Unstructured, wrapper appwrapper.Wrapper, status map[string]any) (time.Duration, error) {
	since, succeeded := appwrapper.SucceededAt(status)
	if !succeeded || wrapper.SuccessTTL == nil {
		return 0, nil
	}
	if left := *wrapper.SuccessTTL - time.Since(since); left > 0 {
		return left, nil
	}
	return 0, d.cluster.Delete(ctx, object)
}

// rejectedBefore reports whether the status says that the AppWrapper was refused.
func rejectedBefore(status map[string]any) bool { return status["rejected"] == true }

// endedBefore reports whether the status says that the workload has ended, which
// queue-manager may have forgotten since.
func endedBefore(status map[string]any) bool {
	switch status["phase"] {
	case "Succeeded", "Failed", "Terminating":
		return true
	}
	return false
}

// progress finds out how the workload stands, and submits it when nobody has it.
func (d *Door) progress(ctx context.Context, object *unstructured.Unstructured, wrapper appwrapper.Wrapper, id workload.ID, queue string, ended bool, k *known) (time.Duration, error) {
	if err := d.fate(ctx, id, k); err != nil {
		return 0, err
	}
	if k.record != nil || k.rejected != nil || ended {
		d.note(id, func(kept *known) { kept.queue = queue })
		return 0, nil
	}
	user, err := d.creator(ctx, object, stampsWrappers)
	if err != nil {
		return 0, err
	}
	wrapper.Bundle.Submitter = user
	wrapper.Bundle.Owner = &bundle.Owner{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(), UID: string(object.GetUID())}
	if reason, err := d.mayNot(ctx, object, wrapper, queue, user); reason != nil || err != nil {
		k.rejected = reason
		d.note(id, func(kept *known) { kept.rejected = reason })
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
	return d.submit(ctx, &event.WorkloadSubmitted{Manifest: manifest, PriorityClass: wrapper.PriorityClass, Workload: workload.Workload{
		ID: id, Queue: queue, Namespace: object.GetNamespace(), Kind: appwrapper.Kind, Name: object.GetName(),
		Priority: wrapper.Priority, Digest: digest, PodSets: wrapper.PodSets, Life: wrapper.Life, Submitter: d.submitterName(user),
	}}, k)
}

// digestOf tells what an AppWrapper asks for from other content under the same id.
// Its owner does not count: the id says which object it is, and a door of before
// did not name it, whose submission may come beside this one.
func digestOf(queue string, asked bundle.Bundle) (string, error) {
	asked.Owner = nil
	manifest, err := asked.Encode()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(append([]byte(queue+"\x00"), manifest...))
	return hex.EncodeToString(digest[:16]), nil
}

// mayNot says why the AppWrapper is not submitted: its queue cannot be one, or
// its user may not create what it wraps.
func (d *Door) mayNot(ctx context.Context, object *unstructured.Unstructured, wrapper appwrapper.Wrapper, queue string, user *bundle.Submitter) (*workload.Reason, error) {
	invalid := func(message string) (*workload.Reason, error) {
		return &workload.Reason{Kind: workload.ReasonInvalid, Message: message}, nil
	}
	if !workload.ValidName(queue) {
		return invalid(fmt.Sprintf("metadata.labels[%s]: %q names no queue; want at most 63 lower-case letters, digits and dashes", appwrapper.QueueLabel, queue))
	}
	if user == nil {
		return invalid("nobody says who created it, so nobody can say what its creator may do; install Muster's admission policies (Kubernetes 1.36 or later) and create it anew")
	}
	for i, item := range wrapper.Bundle.Items {
		wrapped, err := item.Identity()
		if err != nil {
			return nil, err
		}
		wrapped.Namespace = object.GetNamespace()
		why, err := d.cluster.Allowed(ctx, *user, wrapped)
		switch {
		case meta.IsNoMatchError(err):
			return invalid(fmt.Sprintf("wrapped object %d: the cluster knows no kind %s of %s; install its definition first", i, wrapped.Kind, wrapped.APIVersion))
		case err != nil:
			return nil, err
		case why != "":
			return invalid(fmt.Sprintf("wrapped object %d: %s", i, why))
		}
	}
	return nil, nil
}

// creator is who has created the object, as the API server says; nil when nobody
// says it.
func (d *Door) creator(ctx context.Context, object *unstructured.Unstructured, policy string) (*bundle.Submitter, error) {
	user := submitter(object)
	if user == nil {
		return nil, nil
	}
	if stamps, err := d.cluster.Stamps(ctx, policy); err != nil || !stamps {
		return nil, err
	}
	return user, nil
}

// submitterName is how queues know a user of the cluster; nobody has no name.
func (d *Door) submitterName(user *bundle.Submitter) string {
	name := workload.DoorKubernetes + "/" + d.options.Cluster
	if user != nil {
		name += "/" + user.User
	}
	return name
}

func submitter(object *unstructured.Unstructured) *bundle.Submitter {
	annotations := object.GetAnnotations()
	if annotations[userKey] == "" {
		return nil
	}
	user := &bundle.Submitter{User: annotations[userKey], UID: annotations[uidKey]}
	if groups := annotations[groupsKey]; groups != "" {
		user.Groups = strings.Split(groups, "\n")
	}
	return user
}

// deleteWrapper lets the AppWrapper go when nothing of it is left.
func (d *Door) deleteWrapper(ctx context.Context, object *unstructured.Unstructured, id workload.ID, queue string, k known) (time.Duration, error) {
	if !hasFinalizer(object) {
		return 0, nil
	}
	status, _, _ := unstructured.NestedMap(object.Object, "status") // absent reads as empty
	if !rejectedBefore(status) {
		how, again, err := d.cancel(ctx, id, queue, k.key.String()+" was deleted", &k)
		if err != nil || how != cancelDone {
			return again, err
		}
	}
	if err := d.cluster.SetFinalizer(ctx, object, false); err != nil {
		return 0, err
	}
	d.forget(id)
	return 0, nil
}
