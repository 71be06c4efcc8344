package reconcile

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/objectpolicy"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// wrappedItem is one object of an AppWrapper.
type wrappedItem struct {
	bundle bundle.Bundle
	item   bundle.Item
	id     bundle.Identity
	err    error // why the object has no identity
}

func (i *wrappedItem) identity() bundle.Identity { return i.id }

// permit checks the object against the rules, and that the dispatcher itself may
// create, find and delete it: nothing is created of a bundle of which something could
// not be.
func (i *wrappedItem) permit(ctx context.Context, p *pass) error {
	if i.err != nil {
		return fmt.Errorf("%w: %w", errForbidden, i.err)
	}
	user := i.bundle.Submitter
	if user == nil {
		user = p.command.Identity
	}
	if err := p.permissions.check(ctx, permissionRequest{p.command, objectpolicy.CheckObject, user, i.id, i.item.Object}); err != nil {
		return err
	}
	return p.permissions.checkOwn(ctx, i.id)
}

// create creates the object, or adopts that of the attempt. One of an earlier attempt goes
// first, and one of a later attempt stays.
func (i *wrappedItem) create(ctx context.Context, p *pass) (uid string, err error) {
	manifest, err := i.bundle.Stamp(i.item, stampOf(p))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errForbidden, err)
	}
	uid, err = p.cluster.CreateItem(ctx, i.id, manifest)
	if !apierrors.IsAlreadyExists(err) {
		return uid, err
	}
	found, err := p.cluster.GetItem(ctx, i.id)
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "", errLeaving // it went this very moment
	case found.Workload != p.command.Workload && found.Deleting:
		return "", leavingError(found.Object)
	case found.Workload != p.command.Workload:
		return "", i.replace(ctx, p, found)
	case i.isLater(p, found):
		return "", &laterError{&found.Object}
	case found.Attempt == p.command.Attempt && !found.Deleting:
		return found.UID, nil // ours: created before a restart
	case found.Deleting:
		return "", leavingError(found.Object)
	}
	if _, err := p.cluster.DeleteItem(ctx, i.id, found.UID); err != nil {
		return "", err
	}
	return "", errLeaving
}

// replace deletes the object of another workload that has the name, if Muster made it and
// that workload has ended. It was kept to be read until the name is wanted again.
func (i *wrappedItem) replace(ctx context.Context, p *pass, found *kubernetes.Wrapped) error {
	if found.Workload == "" || !found.Stamped || found.Resumed || found.Owned {
		return foreignError(i.id)
	}
	switch standing, err := p.standingOf(ctx, found.Workload); {
	case err != nil:
		return err
	case standing == live:
		return foreignError(i.id)
	case standing == leaving:
		return fmt.Errorf("%w: %s of workload %s, which is being removed", errLeaving, i.id, found.Workload)
	}
	if _, err := p.cluster.DeleteItem(ctx, i.id, found.UID); err != nil {
		return err
	}
	p.logger.Info("object of an ended workload is replaced", append(p.fields(), zap.String("ended", string(found.Workload)), zap.Stringer("object", i.id))...)
	return errLeaving
}

// isLater reports whether an object is of a later attempt of the workload than the command, and
// not the very one that was created for it.
func (i *wrappedItem) isLater(p *pass, found *kubernetes.Wrapped) bool {
	uid := i.createdUID(p.status)
	return found.Workload == p.command.Workload && found.Attempt > p.command.Attempt && (uid == "" || found.UID != uid)
}

// find reads the object of the attempt; nil when it is not there. It returns a laterError for
// one of a later attempt.
func (i *wrappedItem) find(ctx context.Context, p *pass) (*kubernetes.Wrapped, error) {
	if i.err != nil {
		return nil, i.err
	}
	found, err := p.cluster.GetItem(ctx, i.id)
	switch {
	case err != nil || found == nil:
		return nil, err
	case i.isLater(p, found):
		return nil, &laterError{&found.Object}
	case found.Workload != p.command.Workload || found.Attempt != p.command.Attempt:
		return nil, nil
	}
	return found, nil
}

// remove deletes the object, if it is there.
//
// Muster may have no right to read what it created, or what the API server refused
// to create. Of the first kind the UID is known, which is enough to delete it; the
// second is not there.
func (i *wrappedItem) remove(ctx context.Context, p *pass) (gone bool, err error) {
	uid := i.createdUID(p.status)
	found, err := p.cluster.GetItem(ctx, i.id)
	switch {
	case apierrors.IsForbidden(err) && uid == "":
		return true, nil
	case apierrors.IsForbidden(err):
		return p.cluster.DeleteItem(ctx, i.id, uid)
	case err != nil:
		return false, err
	case found == nil:
		return true, nil
	}
	if i.isLater(p, found) {
		return false, &laterError{&found.Object}
	}
	created := uid != "" && found.UID == uid
	labelled := found.Workload == p.command.Workload && found.Attempt <= p.command.Attempt
	switch {
	case !created && !labelled:
		return true, nil
	case found.Deleting:
		p.noteLeft(found.Object)
		return false, nil
	}
	if gone, err = p.cluster.DeleteItem(ctx, i.id, found.UID); err != nil {
		return gone, err
	}
	p.logger.Info("object deleted", zap.String("workload", string(p.command.Workload)), zap.Int("attempt", p.command.Attempt),
		zap.String("kind", i.id.Kind), zap.String("namespace", i.id.Namespace), zap.String("name", i.id.Name))
	return gone, nil
}

func (i *wrappedItem) createdUID(status event.GangStatus) string {
	if n := slices.IndexFunc(status.Objects, i.is); n >= 0 {
		return status.Objects[n].UID
	}
	return ""
}

// noteUID replaces the UID of an earlier object of the name.
func (i *wrappedItem) noteUID(status *event.GangStatus, uid string) {
	others := slices.DeleteFunc(slices.Clone(status.Objects), i.is)
	status.Objects = append(others, event.CreatedObject{APIVersion: i.id.APIVersion, Kind: i.id.Kind, Name: i.id.Name, UID: uid})
}

func (i *wrappedItem) is(o event.CreatedObject) bool {
	return o.APIVersion == i.id.APIVersion && o.Kind == i.id.Kind && o.Name == i.id.Name
}
