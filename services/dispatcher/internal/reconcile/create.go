package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Answers to a creation.
var (
	// errForeign follows the name of the object in a message: the object of another party stays.
	errForeign = errors.New("already exists and does not belong to this workload")
	// errLeaving: an earlier object has to go first.
	errLeaving = errors.New("an object of an earlier attempt is being deleted")
	// errExists: an object of the name has to be looked at.
	errExists = errors.New("an object of that name already exists")
	// errWithdrawn: the suspended object that was to be released is not there.
	errWithdrawn = errors.New("the suspended object is gone")
)

// foreignError follows the name of an object that another one has, with what removes that one.
func foreignError(id bundle.Identity) error {
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(id.APIVersion, id.Kind))
	return fmt.Errorf("%w; use another name, or delete that object if it is not needed: kubectl delete %s -n %s %s", errForeign,
		resource.GroupResource(), id.Namespace, id.Name)
}

// finalError is a failure that trying again does not mend; its text is the cause's.
type finalError struct{ error }

// Unwrap returns the cause.
func (e finalError) Unwrap() error { return e.error }

// mendableError is a failure that an administrator can mend; its text is the cause's.
type mendableError struct{ error }

// create creates all objects in their order, once nothing of an earlier attempt is
// there and each of them is permitted.
func (p *pass) create(ctx context.Context) (time.Duration, error) {
	if len(p.status.Objects) == 0 { // nothing of it is there
		if stopped, err := p.wasStopped(ctx); err != nil {
			return 0, err
		} else if stopped {
			p.status.Gone, p.status.Stopped = true, true
			return p.afterGone(ctx)
		}
		if waits, err := p.awaitEarlier(ctx); waits || err != nil {
			return pollAfter, err
		}
		if waits, err := p.hide(ctx); waits || err != nil {
			return pollAfter, err
		}
		p.status.Message = ""
	}
	for _, one := range p.creation.parts() {
		if err := one.permit(ctx, p); err != nil {
			return p.createFailed(ctx, one, err)
		}
	}
	some, err := p.carried()
	var copies []kubernetes.CarriedCopy
	if err == nil {
		copies, err = p.fetchCarried(ctx, some)
	}
	if errors.Is(err, errFetches) {
		return fetchSoon, nil
	}
	if err != nil {
		p.status.Message = err.Error()
		return carryAgain, p.report(ctx)
	}
	began := p.now()
	for _, one := range p.creation.parts() {
		if one.createdUID(p.status) != "" {
			continue // before a failure
		}
		uid, err := one.create(ctx, p)
		if err != nil {
			return p.createFailed(ctx, one, err)
		}
		one.noteUID(&p.status, uid)
	}
	p.creation.noteCreated(p, began)
	p.status.Created = true
	again := p.placeCarried(ctx, copies, p.createdOwners())
	return sooner(p.timing.nextLook(p), again), p.report(ctx)
}

// createFailed refuses what fails for good and has the rest tried again.
func (p *pass) createFailed(ctx context.Context, one part, cause error) (time.Duration, error) {
	var later *laterError
	switch {
	case errors.As(cause, &later):
		return p.outdated(ctx, later.object)
	case errors.Is(cause, errExists):
		return p.adopt(ctx)
	case errors.Is(cause, errWithdrawn):
		p.status.Gone = true
		return p.awaitRelease(ctx)
	case errors.Is(cause, errLeaving) && p.now().Sub(p.workload.creatingSince(p.command.Attempt, p.now())) <= removeWithin:
		p.status.Message = cause.Error()
		return p.timing.soon(), p.report(ctx)
	case errors.Is(cause, errLeaving): // it does not go in time
	case !p.isForGood(cause):
		err := fmt.Errorf("create %s: %w", one.identity(), cause)
		if isBundle(p.command) { // the next dispatcher must know what this one created
			err = errors.Join(err, p.report(ctx))
		}
		return 0, err
	}
	if !isBundle(p.command) {
		return p.refuse(ctx, cause)
	}
	return p.beginRollback(ctx, one, cause)
}

// adopt looks at the Ray object that has the name already. It is ours if it was
// created before a restart, or if the answer to its creation was lost.
func (p *pass) adopt(ctx context.Context) (time.Duration, error) {
	object, err := p.cluster.Get(ctx, p.command.Kind, p.command.Namespace, p.command.Name)
	if err != nil {
		return 0, err
	}
	if object == nil {
		return retryFirst, nil // gone meanwhile
	}
	return p.watch(ctx, p.compare(object))
}

// Retries of answers that may be early.
const (
	// earlyRetries take about ten seconds.
	earlyRetries = 9
	// unknownKindRetries of a wrapped kind that is not served take about a second: nothing
	// has been created then, and the places are kept from others.
	unknownKindRetries = 6
)

// isForGood reports whether trying again does not mend what keeps an object from
// being created.
func (p *pass) isForGood(cause error) bool {
	var final finalError
	if errors.As(cause, &final) || refusedForGood(cause) {
		return true
	}
	for _, reason := range []error{errForeign, errForbidden, kubernetes.ErrClusterScoped, kubernetes.ErrNotSuspended} {
		if errors.Is(cause, reason) {
			return true
		}
	}
	tries := p.queue.NumRequeues(p.command.Workload)
	if kubernetes.IsUnknownKind(cause) && isBundle(p.command) && tries >= unknownKindRetries {
		return true
	}
	return mayPass(cause) && tries >= earlyRetries
}

// mayPass reports whether something else than the object has to change before it can be
// created: a namespace, a definition or a right.
func mayPass(cause error) bool {
	return mayBeEarly(cause) || kubernetes.IsUnknownKind(cause) || errors.Is(cause, errDispatcherForbidden)
}

// mendable reports whether an administrator can mend what keeps an object from being created:
// a right or a namespace that is missing, or a ResourceQuota or webhook that forbids it.
func mendable(cause error) bool {
	var known mendableError
	return mayBeEarly(cause) || errors.Is(cause, errDispatcherForbidden) || errors.As(cause, &known)
}

// refusedForGood reports whether the API server refuses the object itself.
func refusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// mayBeEarly reports whether an answer is for good unless the namespace, the role or the
// kind was made a moment ago, and not every part of the API server knows it.
func mayBeEarly(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }
