package reconcile

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// ensure brings the workload's object into being, once, sends its pods to their
// nodes, and reports how it goes.
func (r *Reconciler) ensure(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	switch {
	case status.Refused:
		return 0, r.tell(ctx, status)
	case status.Gone:
		return r.awaitRelease(ctx, command, status)
	}
	object := r.cache.Object(command.Kind, command.Namespace, command.Name)
	if object == nil && status.Created {
		return r.missing(ctx, command, status)
	}
	if object == nil {
		return r.create(ctx, command, status)
	}
	return r.found(ctx, command, status, object)
}

// missing deals with an object that was there and is not in the cache.
func (r *Reconciler) missing(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	object, err := r.cluster.Get(ctx, command.Kind, command.Namespace, command.Name)
	if err != nil {
		return 0, err
	}
	if object != nil && object.Workload == command.Workload && object.Attempt == command.Attempt && (status.UID == "" || isCreated(object, status)) {
		return pollAfter, r.tell(ctx, status) // the cache is behind
	}
	return r.gone(ctx, command, status)
}

// gone says that somebody deleted the object, even if there is another one of its
// name and labels now. Creating it anew, or taking the other for it, would be a
// second incarnation.
func (r *Reconciler) gone(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	status.Gone = true
	return r.awaitRelease(ctx, command, status)
}

// isCreated reports whether the object is the very one that was created for the
// attempt, whatever its labels say now.
func isCreated(object *kubernetes.Object, status event.GangStatus) bool {
	return status.UID != "" && object.UID == status.UID
}

func (r *Reconciler) create(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	manifest, err := ray.Stamp(command.Manifest, command.Kind, ray.StampInput{
		Workload: command.Workload, Cluster: command.Cluster, Attempt: command.Attempt, Epoch: command.Epoch, Queue: command.Queue,
		Namespace: command.Namespace, Name: command.Name, Placements: command.Placements, Terms: command.Terms, Trusted: command.Trusted,
		Traceparent: r.contextOf(command.Workload),
	})
	if err == nil {
		err = r.permitObject(ctx, command)
		if err != nil && !r.isForGood(command, err) {
			return 0, fmt.Errorf("ask whether %s %s/%s may be created: %w", command.Kind, command.Namespace, command.Name, err)
		}
	}
	if err != nil {
		return r.refuse(ctx, status, err)
	}
	if uid := heldUID(manifest); uid != "" {
		return r.release(ctx, command, status, uid, manifest)
	}
	began := r.now()
	uid, err := r.cluster.Create(ctx, command.Kind, command.Namespace, manifest)
	r.trace(command, "object created", began, err)
	switch {
	case err == nil:
		r.metrics.created.Observe(r.now().Sub(began).Seconds())
		r.logger.Info("object created", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
			zap.String("kind", command.Kind), zap.String("namespace", command.Namespace), zap.String("name", command.Name))
		status.Created, status.UID = true, uid
		return 0, r.tell(ctx, status)
	case apierrors.IsAlreadyExists(err):
		return r.exists(ctx, command, status)
	case refusedForGood(err), doubtful(err) && r.queue.NumRequeues(command.Workload) >= doubts:
		return r.refuse(ctx, status, err)
	}
	return 0, fmt.Errorf("create %s %s/%s: %w", command.Kind, command.Namespace, command.Name, err)
}

// refusedForGood tells the errors that trying again does not mend.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// doubts is how often an answer is doubted, which takes about ten seconds.
const doubts = 9

// doubtful tells the errors that are for good, unless the namespace, the role or
// the kind was made a moment ago and not every part of the API server knows it.
func doubtful(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// exists looks at the object that has the name already.
func (r *Reconciler) exists(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	object, err := r.cluster.Get(ctx, command.Kind, command.Namespace, command.Name)
	if err != nil {
		return 0, err
	}
	if object == nil {
		return retryFirst, nil // gone meanwhile
	}
	return r.found(ctx, command, status, object)
}

// found deals with an object that has the workload's name.
func (r *Reconciler) found(ctx context.Context, command *event.GangDesired, status event.GangStatus, object *kubernetes.Object) (time.Duration, error) {
	switch {
	case status.UID != "" && !isCreated(object, status):
		return r.gone(ctx, command, status)
	case object.Workload != command.Workload:
		return r.refuse(ctx, status, fmt.Errorf("%s %s/%s exists already and is not of this workload; delete it or use another name",
			command.Kind, command.Namespace, command.Name))
	case object.Attempt > command.Attempt:
		return r.outdated(ctx, command, status, object)
	case object.Attempt < command.Attempt:
		return r.replace(ctx, command, status, object)
	}
	status.Created, status.UID, status.Outcome, status.Message = true, object.UID, object.Outcome, object.Message
	status.Sizes, status.Keeps, status.LastUsed = r.sizes(command, object)
	message, again, err := r.removeUnplanned(ctx, command, status)
	if err != nil {
		return 0, err
	}
	if status.Message == "" {
		status.Message = message
	}
	if command.Yield == "" || command.Trusted || object.Outcome != "" || object.Deleting {
		status.Yielded = command.Yield // no pod is sent anywhere
	}
	if object.Outcome != "" {
		return r.awaitRelease(ctx, command, status)
	}
	if err := r.tell(ctx, status); err != nil {
		return 0, err
	}
	if object.Deleting { // the pods of an object that is on its way out start nowhere
		return 0, r.pinCleanup(ctx, command)
	}
	if err := r.announce(ctx, command, object); err != nil || command.Trusted {
		return again, err
	}
	displaced, err := r.displace(ctx, command)
	if err != nil {
		return 0, err
	}
	if err := r.pin(ctx, command); err != nil {
		return 0, err
	}
	if displaced {
		return pollAfter, nil
	}
	status.Yielded = command.Yield
	return again, r.tell(ctx, status)
}

// replace removes the object of an earlier attempt, for which removeWithin is enough.
func (r *Reconciler) replace(ctx context.Context, command *event.GangDesired, status event.GangStatus, object *kubernetes.Object) (time.Duration, error) {
	if r.now().Sub(r.creating(command)) > removeWithin {
		return r.refuse(ctx, status, fmt.Errorf("%s %s/%s of attempt %d is still there after %s; remove what keeps it, such as a finalizer",
			command.Kind, command.Namespace, command.Name, object.Attempt, removeWithin))
	}
	if object.Deleting {
		return pollAfter, nil
	}
	return pollAfter, r.cluster.Delete(ctx, *object)
}

func (r *Reconciler) refuse(ctx context.Context, status event.GangStatus, cause error) (time.Duration, error) {
	r.metrics.refused.Inc()
	r.logger.Warn("object refused", zap.String("workload", string(status.Workload)), zap.Error(cause))
	status.Refused, status.Message = true, cause.Error()
	return 0, r.tell(ctx, status)
}
