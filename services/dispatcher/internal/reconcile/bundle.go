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
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Items is the API server as far as wrapped objects of any kind are concerned.
// See kubernetes.Client for the meaning of each.
type Items interface {
	CreateItem(ctx context.Context, id bundle.Identity, manifest json.RawMessage) (uid string, err error)
	GetItem(ctx context.Context, id bundle.Identity) (*kubernetes.Wrapped, error)
	DeleteItem(ctx context.Context, id bundle.Identity, uid string) (gone bool, err error)
	Allowed(ctx context.Context, user workload.Identity, id bundle.Identity) (why string, err error)
	Lacks(ctx context.Context, id bundle.Identity) (why string, err error)
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
	if status.Refused {
		return 0, r.tell(ctx, status)
	}
	wrapped, err := bundle.Decode(command.Manifest)
	if err != nil {
		return r.refuse(ctx, status, err)
	}
	r.rememberItems(command, wrapped)
	_, back := r.rollingBack(command)
	switch {
	case back:
		return r.rollBack(ctx, command, status)
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

// takeDownBundle does the next step towards nothing being left of the objects.
func (r *Reconciler) takeDownBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	if command.State == event.Absent || r.now().Sub(r.removing(command)) > time.Duration(command.ForceAfter) && !status.Released {
		return r.removeBundle(ctx, command, status)
	}
	return r.shutDown(ctx, command, status)
}

// createBundle creates all objects in their order, or takes back those that it
// has created.
func (r *Reconciler) createBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus, wrapped bundle.Bundle) (time.Duration, error) {
	began := r.now()
	if id, err := r.permitBundle(ctx, command, wrapped); err != nil {
		return r.createFailed(ctx, command, status, id, err)
	}
	for _, item := range wrapped.Items {
		id, err := identity(item, command)
		if err != nil {
			return r.refuse(ctx, status, err)
		}
		if createdUID(status, id) != "" {
			continue // before a failure
		}
		uid, err := r.createItem(ctx, command, wrapped, item, id)
		if err != nil {
			return r.createFailed(ctx, command, status, id, err)
		}
		status.Objects = withObject(status.Objects, id, uid)
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
	errForeign = errors.New("an object of that name exists already and is not of this workload; delete it or use another name")
	// errLeaving is no reason: an object of an attempt before is on its way out.
	errLeaving = errors.New("an object of an attempt before is being deleted")
)

func (r *Reconciler) createItem(ctx context.Context, command *event.GangDesired, wrapped bundle.Bundle, item bundle.Item, id bundle.Identity) (uid string, err error) {
	manifest, err := wrapped.Stamp(item, ray.StampInput{
		Workload: command.Workload, Cluster: command.Cluster, Attempt: command.Attempt, Epoch: command.Epoch, Queue: command.Queue,
		Namespace: command.Namespace, Placements: command.Placements, Terms: command.Terms, Trusted: command.Trusted,
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	uid, err = r.cluster.CreateItem(ctx, id, manifest)
	if !apierrors.IsAlreadyExists(err) {
		return uid, err
	}
	found, err := r.cluster.GetItem(ctx, id)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", errLeaving // it went this very moment
	case found.Workload != command.Workload:
		return "", errForeign
	case found.Attempt == command.Attempt && !found.Deleting:
		return found.UID, nil // ours: created before a restart
	case found.Deleting:
		return "", errLeaving
	}
	if _, err := r.cluster.DeleteItem(ctx, id, found.UID); err != nil {
		return "", err
	}
	return "", errLeaving
}

// createFailed tells what is for good from what is tried again.
func (r *Reconciler) createFailed(ctx context.Context, command *event.GangDesired, status event.GangStatus, id bundle.Identity, cause error) (time.Duration, error) {
	switch {
	case errors.Is(cause, errLeaving) && r.now().Sub(r.creating(command)) <= removeWithin:
		return bundleSoon, r.tell(ctx, status)
	case errors.Is(cause, errLeaving): // it does not go in time
	case !r.isForGood(command, cause):
		return 0, errors.Join(fmt.Errorf("create %s: %w", id, cause), r.tell(ctx, status))
	}
	message := creationFailure(command, id, cause).Error()
	r.mu.Lock()
	r.rollback[command.Workload] = rollback{command.Attempt, message, r.now()}
	r.mu.Unlock()
	// The next dispatcher must know what this one created.
	if err := r.tell(ctx, status); err != nil {
		return 0, err
	}
	return r.rollBack(ctx, command, status)
}

// isForGood reports whether trying again does not mend what keeps an object from
// being created.
func (r *Reconciler) isForGood(command *event.GangDesired, cause error) bool {
	if refusedForGood(cause) || errors.Is(cause, errForeign) || errors.Is(cause, errNotAllowed) || errors.Is(cause, kubernetes.ErrClusterScoped) {
		return true
	}
	doubted := doubtful(cause) || kubernetes.IsUnknownKind(cause) || errors.Is(cause, errNoRight)
	return doubted && r.queue.NumRequeues(command.Workload) >= doubts
}

func creationFailure(command *event.GangDesired, id bundle.Identity, cause error) error {
	return fmt.Errorf("%s/%s creation failure: %s %s: %w", command.Namespace, command.Name, id.Kind, id.Name, cause)
}

// rollback is a creation that is being taken back, since when and why. It is not
// stored: the next dispatcher creates again, and is refused again. What was created
// is in the status.
type rollback struct {
	attempt int
	cause   string
	since   time.Time
}

func (r *Reconciler) rollingBack(command *event.GangDesired) (back rollback, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	back = r.rollback[command.Workload]
	return back, back.cause != "" && back.attempt == command.Attempt
}

// rollBack refuses the bundle when nothing of it is left, or when removeWithin is
// over and no pod of it runs.
func (r *Reconciler) rollBack(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	back, _ := r.rollingBack(command)
	overdue := r.now().Sub(back.since) > removeWithin
	left, failed := r.deleteItems(ctx, command, status)
	if !overdue && (left > 0 || failed != nil) {
		return bundleSoon, failed
	}
	remaining, err := r.cluster.Remaining(ctx, command.Workload, command.Namespace)
	switch {
	case err != nil:
		return 0, err
	case overdue && remaining.Pods > remaining.Gated, !overdue && !remaining.Nothing():
		return bundleSoon, r.reap(ctx, command)
	}
	cause := errors.New(back.cause)
	if left > 0 || failed != nil {
		r.metrics.leftBehind.Inc()
		cause = fmt.Errorf("%w; objects stay that cannot be removed: %s", cause, stuck(failed))
	}
	r.mu.Lock()
	delete(r.rollback, command.Workload)
	r.mu.Unlock()
	return r.refuse(ctx, status, cause)
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
// many are left. What fails for one does not keep the others.
func (r *Reconciler) deleteItems(ctx context.Context, command *event.GangDesired, status event.GangStatus) (left int, err error) {
	r.mu.Lock()
	ids := r.items[command.Workload]
	r.mu.Unlock()
	var failed []error
	for _, id := range slices.Backward(ids) {
		gone, err := r.deleteItem(ctx, command, id, createdUID(status, id))
		if err != nil {
			failed = append(failed, err)
		} else if !gone {
			left++
		}
	}
	return left, errors.Join(failed...)
}

// deleteItem deletes one object of a workload, if it is there; uid is that which
// was created, as far as known.
//
// Muster may have no right to read what it created, or what the API server refused
// to create. Of the first kind the UID is known, which is enough to delete it; the
// second is not there.
func (r *Reconciler) deleteItem(ctx context.Context, command *event.GangDesired, id bundle.Identity, uid string) (gone bool, err error) {
	found, err := r.cluster.GetItem(ctx, id)
	switch {
	case apierrors.IsForbidden(err) && uid == "":
		return true, nil
	case apierrors.IsForbidden(err):
		return r.cluster.DeleteItem(ctx, id, uid)
	case err != nil:
		return false, err
	case found == nil:
		return true, nil
	}
	created := uid != "" && found.UID == uid
	labelled := found.Workload == command.Workload && found.Attempt <= command.Attempt
	switch {
	case !created && !labelled:
		return true, nil
	case found.Deleting:
		return false, nil
	}
	if gone, err = r.cluster.DeleteItem(ctx, id, found.UID); err != nil {
		return gone, err
	}
	r.logger.Info("object deleted", zap.String("workload", string(command.Workload)), zap.Int("attempt", command.Attempt),
		zap.String("kind", id.Kind), zap.String("namespace", id.Namespace), zap.String("name", id.Name))
	return gone, nil
}

// removeBundle deletes all objects and reports when nothing is left.
func (r *Reconciler) removeBundle(ctx context.Context, command *event.GangDesired, status event.GangStatus) (time.Duration, error) {
	wrapped, err := bundle.Decode(command.Manifest) // every command but the last has it
	if err != nil {
		return 0, err
	}
	r.rememberItems(command, wrapped)
	left, err := r.deleteItems(ctx, command, status)
	if err != nil {
		return 0, errors.Join(err, r.reap(ctx, command))
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
	message, again, err := r.removeUnplanned(ctx, command, status)
	if err != nil {
		return 0, err
	}
	if status.Message == "" {
		status.Message = message
	}
	status.Sizes, status.Keeps = r.bundleSizes(command, wrapped)
	if err := r.announceBundle(ctx, command, wrapped); err != nil {
		return 0, err
	}
	next, err := r.placeBundle(ctx, command, status)
	return sooner(next, again), err
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
