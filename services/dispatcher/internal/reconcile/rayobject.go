package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/objectpolicy"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// rayAPI is the API server, for Ray objects.
type rayAPI interface {
	objectAPI
	Create(ctx context.Context, kind, namespace string, manifest json.RawMessage) (uid string, err error)
	Release(ctx context.Context, kind, uid string, manifest json.RawMessage) (done bool, err error)
}

// rayObject is the one Ray object of a workload: a bundle of one, which the cache shows.
// A user may have created it suspended; then it is released instead of created.
type rayObject struct {
	id           bundle.Identity
	manifest     json.RawMessage // stamped for the attempt, once it is permitted
	suspendedUID string          // UID of the suspended object; empty when there is none
}

func newRayObject(command *event.GangCommand) *rayObject {
	return &rayObject{id: bundle.Identity{APIVersion: ray.GroupVersion, Kind: command.Kind, Namespace: command.Namespace, Name: command.Name}}
}

func (o *rayObject) parts() []part             { return []part{o} }
func (o *rayObject) identity() bundle.Identity { return o.id }

// nextLook is never: each change is seen.
func (o *rayObject) nextLook(*pass) time.Duration { return 0 }
func (o *rayObject) soon() time.Duration          { return pollAfter }

func (o *rayObject) createdUID(status event.GangStatus) string    { return status.UID }
func (o *rayObject) noteUID(status *event.GangStatus, uid string) { status.UID = uid }

func (o *rayObject) permit(ctx context.Context, p *pass) error {
	if err := checkMoved(p.command); err != nil {
		return finalError{err}
	}
	manifest, err := ray.Stamp(p.command.Manifest, p.command.Kind, stampOf(p))
	if err != nil {
		return finalError{err}
	}
	o.manifest, o.suspendedUID = manifest, suspendedUIDOf(manifest)
	return p.permissions.check(ctx, permissionRequest{p.command, objectpolicy.Check, identityOf(p.command), o.id, p.command.Manifest})
}

func (o *rayObject) create(ctx context.Context, p *pass) (uid string, err error) {
	if o.suspendedUID != "" {
		return o.release(ctx, p)
	}
	began := p.now()
	uid, err = p.cluster.Create(ctx, o.id.Kind, o.id.Namespace, o.manifest)
	p.trace("object created", began, err)
	if apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("%w: %w", errExists, err)
	}
	return uid, err
}

// release lets the suspended object start. When it is gone its workload is cancelled
// like one whose object was deleted.
func (o *rayObject) release(ctx context.Context, p *pass) (uid string, err error) {
	began := p.now()
	done, err := p.cluster.Release(ctx, o.id.Kind, o.suspendedUID, o.manifest)
	p.trace("object released", began, err)
	if err == nil && !done {
		return "", errWithdrawn
	}
	return o.suspendedUID, err
}

func (o *rayObject) noteCreated(p *pass, began time.Time) {
	if o.suspendedUID != "" {
		p.logger.Info("object released", p.fields()...)
		return
	}
	p.metrics.created.Observe(p.now().Sub(began).Seconds())
	p.logger.Info("object created", p.fields()...)
}

func (o *rayObject) observe(ctx context.Context, p *pass) (observation, error) {
	object := p.cache.Object(o.id.Kind, o.id.Namespace, o.id.Name)
	switch {
	case object != nil:
		return p.compare(object), nil
	case !p.status.Created:
		return observation{standing: absent}, nil
	}
	object, err := p.cluster.Get(ctx, o.id.Kind, o.id.Namespace, o.id.Name)
	if err != nil {
		return observation{}, err
	}
	if object != nil && object.Workload == p.command.Workload && object.Attempt == p.command.Attempt &&
		(p.status.UID == "" || isCreated(object, p.status)) {
		return observation{standing: delayed}, nil
	}
	return observation{standing: gone}, nil
}

// compare returns how the object that has the name of the workload's stands to the
// command.
func (p *pass) compare(object *kubernetes.Object) observation {
	seen := observation{object: object}
	switch {
	case p.status.UID != "" && !isCreated(object, p.status):
		seen.standing = gone
	case object.Workload != p.command.Workload:
		seen.standing = foreign
	case object.Attempt > p.command.Attempt:
		seen.standing = later
	case object.Attempt < p.command.Attempt:
		seen.standing = earlier
	default:
		seen.standing, seen.uid, seen.outcome, seen.message = ours, object.UID, object.Outcome, object.Message
		seen.permitted = object.Permitted
		seen.owners = []metav1.OwnerReference{ownerOf(bundle.Identity{APIVersion: ray.GroupVersion, Kind: p.command.Kind, Name: p.command.Name}, object.UID)}
		seen.deleting, seen.announced = object.Deleting, []*kubernetes.Object{object}
		seen.sizes, seen.keeps, seen.lastUsed = p.raySizes(object)
		seen.checkpoint = laterOf(object.LastCheckpoint, p.savedByPods())
		seen.status = object.Status
	}
	return seen
}

func (o *rayObject) remove(ctx context.Context, p *pass) (left int, err error) {
	object := p.cache.Object(o.id.Kind, o.id.Namespace, o.id.Name)
	if object == nil || object.Workload != p.command.Workload {
		if object, err = p.cluster.Get(ctx, o.id.Kind, o.id.Namespace, o.id.Name); err != nil {
			return 0, err
		}
	}
	switch {
	// One that was resumed and has no label of ours any more is suspended again.
	case object == nil || object.Workload != p.command.Workload && (object.Resumed || !isCreated(object, p.status)):
		return 0, nil
	case object.Attempt > p.command.Attempt:
		return 1, &laterError{object}
	case object.Deleting:
		p.noteLeft(*object)
		return 1, nil
	}
	if err := p.cluster.Delete(ctx, *object); err != nil {
		return 1, err
	}
	p.logger.Info("object deleted", p.fields()...)
	return 1, nil
}

// suspendedUIDOf is the UID of the object that is to be released instead of created;
// empty when there is none.
func suspendedUIDOf(manifest json.RawMessage) string {
	return manifestMetadata(manifest).Annotations[kube.SuspendedUIDKey]
}
