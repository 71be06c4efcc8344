package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/bundle"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/objectpolicy"
	"muster.dev/muster/pkg/podpolicy"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/workload"
)

// Reasons to refuse that are Muster's own.
var (
	errNotAllowed = errors.New("not allowed")
	// errNoRight is doubted for a while: the role may have been made a moment ago.
	errNoRight = errors.New("the dispatcher lacks a right")
)

// permit says why an object may not be created now: rules and rights may have
// changed since the submission. The error wraps errNotAllowed when it is for good.
func (r *Reconciler) permit(ctx context.Context, command *event.GangDesired, identity *workload.Identity, id bundle.Identity, manifest json.RawMessage) error {
	check := objectpolicy.Check
	if isBundle(command) {
		check = objectpolicy.CheckObject
	}
	err := check(command.ObjectPolicy, manifest)
	if err == nil {
		err = podpolicy.Check(command.PodPolicy, manifest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	if identity == nil {
		return nil
	}
	why, err := r.cluster.Allowed(ctx, *identity, id)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s", errNotAllowed, why)
	}
	return nil
}

// permitObject is permit for the one Ray object of a workload.
func (r *Reconciler) permitObject(ctx context.Context, command *event.GangDesired) error {
	id := bundle.Identity{APIVersion: ray.GroupVersion, Kind: command.Kind, Namespace: command.Namespace, Name: command.Name}
	return r.permit(ctx, command, identityOf(command), id, command.Manifest)
}

// identityOf is on whose behalf the object is created: who created it suspended, as
// intake has it from the API server, or who the queue binds the submitter to; nil
// when Muster's own rights count.
func identityOf(command *event.GangDesired) *workload.Identity {
	var object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(command.Manifest, &object) != nil || object.Metadata.Annotations[kube.HeldKey] == "" {
		return command.Identity
	}
	var identity workload.Identity
	if json.Unmarshal([]byte(object.Metadata.Annotations[kube.IdentityKey]), &identity) != nil || identity.User == "" {
		return command.Identity // of an intake that recorded none
	}
	return &identity
}

// permitBundle is permit for all objects of a bundle, and asks whether the
// dispatcher itself may create, find and delete them: nothing is created of a
// bundle of which something could not be. It returns the object that is at fault.
func (r *Reconciler) permitBundle(ctx context.Context, command *event.GangDesired, wrapped bundle.Bundle) (bundle.Identity, error) {
	on := wrapped.Submitter
	if on == nil {
		on = command.Identity
	}
	for _, item := range wrapped.Items {
		id, err := identity(item, command)
		if err != nil {
			return id, fmt.Errorf("%w: %w", errNotAllowed, err)
		}
		if err := r.permit(ctx, command, on, id, item.Object); err != nil {
			return id, err
		}
		why, err := r.cluster.Lacks(ctx, id)
		if err != nil {
			return id, err
		}
		if why != "" {
			return id, fmt.Errorf("%w: %s", errNoRight, why)
		}
	}
	return bundle.Identity{}, nil
}
