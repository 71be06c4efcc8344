package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Items is the API server as far as wrapped objects of any kind are concerned.
// See kubernetes.Client for the meaning of each.
type Items interface {
	CreateItem(ctx context.Context, id bundle.Identity, manifest json.RawMessage) error
	GetItem(ctx context.Context, id bundle.Identity) (*kubernetes.Wrapped, error)
	DeleteItem(ctx context.Context, id bundle.Identity, object kubernetes.Object) error
	Allowed(ctx context.Context, user bundle.Submitter, id bundle.Identity) (why string, err error)
}

// bundleKind is the kind of workloads of several objects.
const bundleKind = "AppWrapper"

func isBundle(command *event.GangDesired) bool { return command.Kind == bundleKind }

// Bundles are read again after a pod of theirs has ended, when its controller
// has had time to say so, and now and then.
const (
	bundleSoon = time.Second
	bundleLate = 15 * time.Second
)

// lookBundle does the next step for a workload of several objects. It keeps the
// rules of single objects: nothing foreign is touched, a missing object that has
// been there is not created again, and what was refused is taken back whole
// before that is said.
func (r *Reconciler) lookBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	switch command.State {
	case event.Absent:
		return r.removeBundle(ctx, command, status)
	case event.Ended:
		if r.now().Sub(r.removing(command)) > time.Duration(command.ForceAfter) && !status.Released {
			return r.removeBundle(ctx, command, status)
		}
		return r.shutDown(ctx, command, status)
	}
	if status.Refused {
		return 0, r.tell(ctx, status)
	}
	wrapped, err := bundle.Decode(command.Manifest)
	if err != nil {
		return r.refuse(ctx, status, err)
	}
	r.rememberItems(command, wrapped)
	switch cause := r.rollingBack(command); {
	case cause != "":
		return r.rollBack(ctx, command, status, cause)
	case status.Gone:
		return r.removeBundle(ctx, command, status)
	case status.Outcome != "":
		status.Yielded = command.Yield // no pod is sent anywhere
		return r.awaitRelease(ctx, command, status)
	case !status.Created:
		return r.createBundle(ctx, command, status, wrapped)
	}
	return r.watchBundle(ctx, command, status, wrapped)
}

// createBundle creates all objects in their order, or takes back those that it
// has created.
func (r *Reconciler) createBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus, wrapped bundle.Bundle) (time.Duration, error) {
	began := r.now()
	for _, item := range wrapped.Items {
		id, err := identity(item, command)
		if err != nil {
			return r.refuse(ctx, status, err)
		}
		if wrapped.Submitter != nil {
			why, err := r.cluster.Allowed(ctx, *wrapped.Submitter, id)
			if err == nil && why != "" {
				err = fmt.Errorf("%w: %s", errNotAllowed, why)
			}
			if err != nil {
				return r.createFailed(ctx, command, status, id, err)
			}
		}
		if err := r.createItem(ctx, command, wrapped, item, id); err != nil {
			return r.createFailed(ctx, command, status, id, err)
		}
	}
	r.metrics.created.Observe(r.now().Sub(began).Seconds())
	r.trace(command, "objects created", began, nil)
	r.logger.Info("objects created", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
		zap.String("kind", command.Kind), zap.String("namespace", command.Namespace), zap.String("name", command.Name),
		zap.Int("objects", len(wrapped.Items)))
	status.Created = true
	return bundleSoon, r.tell(ctx, status)
}

func identity(item bundle.Item, command *event.GangDesired) (bundle.Identity, error) {
	id, err := item.Identity()
	id.Namespace = command.Namespace
	return id, err
}

// Reasons to refuse that are Muster's own.
var (
	errNotAllowed = errors.New("not allowed")
	errForeign    = errors.New("an object of that name exists already and is not of this workload; delete it or use another name")
	// errLeaving is no reason: an object of an attempt before is on its way out.
	errLeaving = errors.New("an object of an attempt before is being deleted")
)

func (r *Reconciler) createItem(ctx context.Context, command *event.GangDesired, wrapped bundle.Bundle, item bundle.Item, id bundle.Identity) error {
	manifest, err := wrapped.Stamp(item, ray.StampInput{
		Workload: command.Workload, Cluster: command.Cluster, Attempt: command.Attempt, Epoch: command.Epoch, Queue: command.Queue,
		Namespace: command.Namespace, Placements: command.Placements, Terms: command.Terms, Trusted: command.Trusted,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	err = r.cluster.CreateItem(ctx, id, manifest)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found, err := r.cluster.GetItem(ctx, id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return errLeaving // it went this very moment
	case found.Workload != command.Workload:
		return errForeign
	case found.Attempt == command.Attempt && !found.Deleting:
		return nil // ours: created before a restart
	case found.Deleting:
		return errLeaving
	}
	if err := r.cluster.DeleteItem(ctx, id, found.Object); err != nil {
		return err
	}
	return errLeaving
}

// createFailed tells what is for good from what is tried again.
func (r *Reconciler) createFailed(ctx context.Context, command *event.GangDesired, status event.GangStatus, id bundle.Identity, cause error) (time.Duration, error) {
	forGood := refusedForGood(cause) || errors.Is(cause, errForeign) || errors.Is(cause, errNotAllowed) || errors.Is(cause, kubernetes.ErrClusterScoped)
	doubted := (doubtful(cause) || kubernetes.IsUnknownKind(cause)) && r.queue.NumRequeues(command.Workload) >= doubts
	switch {
	case errors.Is(cause, errLeaving):
		return bundleSoon, nil
	case !forGood && !doubted:
		return 0, fmt.Errorf("create %s: %w", id, cause)
	}
	message := fmt.Sprintf("%s/%s creation failure: %s %s: %s", command.Namespace, command.Name, id.Kind, id.Name, cause)
	r.mu.Lock()
	r.rollback[command.Workload] = rollback{command.Attempt, message}
	r.mu.Unlock()
	return r.rollBack(ctx, command, status, message)
}

// rollback is a creation that is being taken back. It is not stored: a
// dispatcher that starts anew creates again, and is refused again.
type rollback struct {
	attempt int
	cause   string
}

func (r *Reconciler) rollingBack(command *event.GangDesired) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if back := r.rollback[command.Workload]; back.attempt == command.Attempt {
		return back.cause
	}
	return ""
}

// rollBack says that the bundle is refused when nothing of it is left.
func (r *Reconciler) rollBack(ctx context.Context, command *event.GangDesired, status event.GangStatus, cause string) (time.Duration, error) {
	left, err := r.deleteItems(ctx, command)
	if err != nil {
		return 0, err
	}
	if left > 0 {
		return bundleSoon, nil
	}
	pods, clusters, err := r.cluster.Remaining(ctx, command.Workload, command.Namespace)
	if err != nil {
		return 0, err
	}
	if pods+clusters > 0 {
		return bundleSoon, nil
	}
	r.mu.Lock()
	delete(r.rollback, command.Workload)
	r.mu.Unlock()
	return r.refuse(ctx, status, errors.New(cause))
}

// rememberItems keeps what is to be deleted.
func (r *Reconciler) rememberItems(command *event.GangDesired, wrapped bundle.Bundle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.items[command.Workload] != nil {
		return
	}
	ids := make([]bundle.Identity, 0, len(wrapped.Items))
	for _, item := range wrapped.Items {
		if id, err := identity(item, command); err == nil {
			ids = append(ids, id)
		}
	}
	r.items[command.Workload] = ids
}

// deleteItems deletes the objects of a workload, the last first, and returns how
// many are left.
func (r *Reconciler) deleteItems(ctx context.Context, command *event.GangDesired) (left int, err error) {
	r.mu.Lock()
	ids := r.items[command.Workload]
	r.mu.Unlock()
	for _, id := range slices.Backward(ids) {
		found, err := r.cluster.GetItem(ctx, id)
		if err != nil {
			return 0, err
		}
		if found == nil || found.Workload != command.Workload || found.Attempt > command.Attempt {
			continue
		}
		left++
		if found.Deleting {
			continue
		}
		if err := r.cluster.DeleteItem(ctx, id, found.Object); err != nil {
			return 0, err
		}
		r.logger.Info("object deleted", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
			zap.String("kind", id.Kind), zap.String("namespace", id.Namespace), zap.String("name", id.Name))
	}
	return left, nil
}

// removeBundle deletes all objects and reports when nothing is left.
func (r *Reconciler) removeBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	wrapped, err := bundle.Decode(command.Manifest) // every command but the last has it
	if err != nil {
		return 0, err
	}
	r.rememberItems(command, wrapped)
	left, err := r.deleteItems(ctx, command)
	if err != nil {
		return 0, err
	}
	if status.Gone && left > 0 { // one was missed: say so, the others follow
		if err := r.tell(ctx, status); err != nil {
			return 0, err
		}
	}
	if left > 0 {
		return bundleSoon, r.reap(ctx, command)
	}
	status.Gone = true
	return r.awaitRemoval(ctx, command, status)
}

// watchBundle looks at the objects that make pods: whether they are there, and
// whether they have come to an end.
func (r *Reconciler) watchBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus, wrapped bundle.Bundle) (time.Duration, error) {
	status.Message = ""
	said, done, ending := anySaid(wrapped), []string{}, 0
	for _, item := range wrapped.Items {
		if !item.MakesPods && len(item.Done) == 0 {
			continue
		}
		id, err := identity(item, command)
		if err != nil {
			return 0, err
		}
		found, err := r.cluster.GetItem(ctx, id)
		switch {
		case err != nil:
			return 0, err
		case found == nil || found.Workload != command.Workload || found.Attempt != command.Attempt:
			status.Gone, status.Message = true, fmt.Sprintf("%s is gone", id)
			return r.removeBundle(ctx, command, status)
		}
		if status.Message == "" {
			status.Message = found.Message
		}
		if said && len(item.Done) == 0 {
			continue // somebody said which objects count
		}
		ending++
		switch end, why := item.Ended(found.Content); end {
		case bundle.Failed:
			status.Outcome, status.Message = event.OutcomeFailed, why
			return r.awaitRelease(ctx, command, status)
		case bundle.Succeeded:
			done = append(done, why)
		}
	}
	if ending > 0 && len(done) == ending {
		status.Outcome, status.Message = event.OutcomeSucceeded, strings.Join(done, "; ")
		return r.awaitRelease(ctx, command, status)
	}
	status.Sizes, status.Keeps = r.bundleSizes(command, wrapped)
	if err := r.announceBundle(ctx, command, wrapped); err != nil {
		return 0, err
	}
	return r.placeBundle(ctx, command, status)
}

// announceBundle tells the Ray objects of a bundle of their eviction. What reads such
// an announcement on other objects is not known.
func (r *Reconciler) announceBundle(ctx context.Context, command *event.GangDesired, wrapped bundle.Bundle) error {
	for _, item := range wrapped.Items {
		id, err := identity(item, command)
		if err != nil || !bundle.IsRay(id) {
			continue
		}
		object := r.cache.Object(id.Kind, id.Namespace, id.Name)
		if object == nil || object.Workload != command.Workload || object.Attempt != command.Attempt || object.Deleting {
			continue
		}
		if err := r.announce(ctx, command, object); err != nil {
			return err
		}
	}
	return nil
}

// placeBundle reports the status and sends the pods to their places.
func (r *Reconciler) placeBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	if command.Yield == "" || command.Trusted {
		status.Yielded = command.Yield // no pod is sent anywhere
	}
	if err := r.tell(ctx, status); err != nil || command.Trusted {
		return r.nextLook(command), err
	}
	displaced, err := r.displace(ctx, command)
	if err != nil {
		return 0, err
	}
	if err := r.pin(ctx, command); err != nil || displaced {
		return bundleSoon, err
	}
	status.Yielded = command.Yield
	return r.nextLook(command), r.tell(ctx, status)
}

// anySaid reports whether some item says when it is done; then those count that
// do.
func anySaid(wrapped bundle.Bundle) bool {
	return slices.ContainsFunc(wrapped.Items, func(i bundle.Item) bool { return len(i.Done) > 0 })
}

// nextLook is soon while something is about to happen.
func (r *Reconciler) nextLook(command *event.GangDesired) time.Duration {
	pods := r.cache.Pods(command.Workload)
	moving := func(p gang.Pod) bool { return p.Ended || p.Deleting || p.Gated || p.Node == "" }
	if len(pods) == 0 || slices.ContainsFunc(pods, moving) {
		return bundleSoon
	}
	return bundleLate
}
