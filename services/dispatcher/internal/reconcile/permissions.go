package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Reasons to refuse that are Muster's own.
var (
	// errForbidden is final: the queue's policies or the rights of the user refuse it.
	errForbidden = errors.New("not allowed")
	// errDispatcherForbidden is retried for a while: the role may have been made a moment ago.
	errDispatcherForbidden = errors.New("the dispatcher lacks a right")
)

// accessReviews asks the API server for rights; an empty why is a yes.
type accessReviews interface {
	Allowed(ctx context.Context, user workload.Identity, id bundle.Identity) (why string, err error)
	Lacks(ctx context.Context, id bundle.Identity) (why string, err error)
}

// permissionChecker checks what may be created, at the time of the creation.
type permissionChecker struct{ cluster accessReviews }

// permissionRequest is the object for which permission is checked.
type permissionRequest struct {
	command  *event.GangCommand
	policy   func(workload.ObjectPolicy, json.RawMessage) error
	user     *workload.Identity // nil when Muster's own rights count
	id       bundle.Identity
	manifest json.RawMessage
}

// check holds an object against the policies of the queue and the rights of the user.
// The error wraps errForbidden when it is for good.
func (a permissionChecker) check(ctx context.Context, asked permissionRequest) error {
	err := asked.policy(asked.command.ObjectPolicy, asked.manifest)
	if err == nil {
		err = podpolicy.Check(asked.command.PodPolicy, asked.manifest)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errForbidden, err)
	}
	if asked.user == nil {
		return nil
	}
	why, err := a.cluster.Allowed(ctx, *asked.user, asked.id)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s", errForbidden, why)
	}
	return nil
}

// checkOwn checks the dispatcher's own rights on an object.
func (a permissionChecker) checkOwn(ctx context.Context, id bundle.Identity) error {
	why, err := a.cluster.Lacks(ctx, id)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s", errDispatcherForbidden, why)
	}
	return nil
}

// identityOf is on whose behalf a Ray object is created: the user that created it
// suspended, as intake has it from the API server, or the one that the queue binds the
// submitter to; nil when Muster's own rights count. Another cluster's users are not this one's.
func identityOf(command *event.GangCommand) *workload.Identity {
	if command.Home != "" {
		return command.Identity
	}
	annotations := manifestMetadata(command.Manifest).Annotations
	if annotations[kube.SuspendedUIDKey] == "" {
		return command.Identity
	}
	var identity workload.Identity
	if json.Unmarshal([]byte(annotations[kube.IdentityKey]), &identity) != nil || identity.User == "" {
		return command.Identity // of an intake that recorded none
	}
	return &identity
}

// sizesOf returns the pod sets that start with fewer pods than were submitted.
func sizesOf(sets []workload.PodSet) map[string]int {
	sizes := map[string]int{}
	for _, set := range sets {
		if set.MinCount > 0 && set.Resized < 0 {
			sizes[set.Name] = set.Count
		}
	}
	return sizes
}

// stampOf is what is written into the manifests of an attempt.
func stampOf(p *pass) ray.StampInput {
	c := p.command
	in := ray.StampInput{
		Workload: c.Workload, Cluster: c.Cluster, Attempt: c.Attempt, Epoch: c.Epoch, Queue: c.Queue,
		Namespace: c.Namespace, Placements: c.Placements, Terms: c.Terms, Trusted: c.Trusted,
		Annotations: requestAnnotations(p), Unplaced: c.State == event.Provision, Sizes: sizesOf(c.PodSets), Permitted: c.Permitted && c.State == event.Present,
	}
	if !isBundle(p.command) {
		in.Name, in.Traceparent = c.Name, p.workload.trace()
	}
	if c.Home != "" {
		in.Home = c.Home + "/" + manifestMetadata(c.Manifest).Name
	}
	return in
}
