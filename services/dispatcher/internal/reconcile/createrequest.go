package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// createRequest creates the PodTemplates and then the request, which names them. Other
// requests of the workload go first.
func (p *pass) createRequest(ctx context.Context) (time.Duration, error) {
	if err := p.removeRequests(ctx, p.command.Provision.Name); err != nil {
		return 0, err
	}
	for _, one := range p.creation.parts() { // what may not run needs no nodes
		if err := one.permit(ctx, p); err != nil {
			return p.requestRefused(ctx, err)
		}
	}
	templates, err := p.podTemplates()
	if err != nil {
		return p.requestRefused(ctx, finalError{err})
	}
	sets := make([]any, len(templates))
	for i, t := range templates {
		id := bundle.Identity{APIVersion: podTemplatesAPI, Kind: podTemplateKind, Namespace: p.command.Namespace, Name: t.name}
		if err := p.createItem(ctx, id, t.manifest); err != nil {
			return p.requestNotCreated(ctx, err)
		}
		sets[i] = map[string]any{"podTemplateRef": map[string]any{"name": t.name}, "count": t.pods}
	}
	wanted := p.command.Provision
	spec := map[string]any{"provisioningClassName": wanted.Class, "podSets": sets}
	if parameters := p.requestParameters(); len(parameters) > 0 {
		spec["parameters"] = parameters
	}
	err = p.createRequestAs(ctx, requestVersion, spec)
	if kubernetes.IsUnknownKind(err) {
		err = p.createRequestAs(ctx, requestBeta, spec)
	}
	if err != nil {
		return p.requestNotCreated(ctx, err)
	}
	p.status.Provision.Created, p.status.Provision.Message = true, ""
	p.logger.Info("nodes asked for", p.fields()...)
	return requestLookAgain, p.report(ctx)
}

// requestParameters are those of the configuration, and those that annotations of the object
// set, as in Kueue.
func (p *pass) requestParameters() map[string]string {
	parameters := map[string]string{}
	maps.Copy(parameters, p.command.Provision.Parameters)
	for key, value := range manifestMetadata(p.command.Manifest).Annotations {
		if name, is := strings.CutPrefix(key, parameterPrefix); is {
			parameters[name] = value
		}
	}
	return parameters
}

func (p *pass) createRequestAs(ctx context.Context, version string, spec map[string]any) error {
	id := p.requestIdentity(version, p.command.Provision.Name)
	manifest, err := json.Marshal(map[string]any{"apiVersion": version, "kind": requestKind, "metadata": p.metadataOf(id.Name, nil), "spec": spec})
	if err != nil {
		return fmt.Errorf("encode %s: %w", id, err)
	}
	return p.createItem(ctx, id, manifest)
}

// createItem creates an object that may be there already, from a pass before.
func (p *pass) createItem(ctx context.Context, id bundle.Identity, manifest json.RawMessage) error {
	_, err := p.cluster.CreateItem(ctx, id, manifest)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there, err := p.cluster.GetItem(ctx, id)
	switch {
	case err != nil:
		return err
	case there == nil || there.Deleting:
		return fmt.Errorf("%s: %w", id, errLeaving)
	case there.Workload != p.command.Workload:
		return finalError{fmt.Errorf("%s %w", id, foreignError(id))}
	}
	return nil
}

// metadataOf is that of an object of the request, with the labels by which it is found.
func (p *pass) metadataOf(name string, annotations map[string]any) map[string]any {
	c := p.command
	all := map[string]any{kube.EpochKey: strconv.FormatInt(c.Epoch, 10)}
	for key, value := range annotations {
		all[key] = value
	}
	return map[string]any{
		"name": name, "namespace": c.Namespace, "annotations": all,
		"labels": map[string]any{
			kube.WorkloadLabel: string(c.Workload), kube.ClusterLabel: c.Cluster, kube.QueueLabel: c.Queue,
			kube.AttemptLabel: strconv.Itoa(c.Attempt),
		},
	}
}

// requestNotCreated has a creation tried again for as long as it takes where an administrator
// can mend what keeps it away, such as a missing definition or right: no autoscaler has
// answered yet. What keeps it away is reported.
func (p *pass) requestNotCreated(ctx context.Context, cause error) (time.Duration, error) {
	if !mayPass(cause) {
		return p.requestRefused(ctx, cause)
	}
	p.status.Provision.Message = cause.Error()
	return 0, errors.Join(fmt.Errorf("ask for nodes: %w", cause), p.report(ctx))
}

// requestRefused reports what keeps nodes from being asked for, for good, and has the rest
// tried again.
func (p *pass) requestRefused(ctx context.Context, cause error) (time.Duration, error) {
	switch {
	case errors.Is(cause, errLeaving):
		return requestLookAgain, nil
	case !p.isForGood(cause):
		return 0, fmt.Errorf("ask for nodes: %w", cause)
	}
	p.status.Provision.State, p.status.Provision.Message = event.RequestFailed, cause.Error()
	return 0, p.report(ctx)
}
