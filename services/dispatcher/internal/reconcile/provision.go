package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// Kinds by which nodes are asked for. v1beta1 is for API servers that serve only that.
const (
	requestKind      = "ProvisioningRequest"
	requestVersion   = "autoscaling.x-k8s.io/v1"
	requestBeta      = "autoscaling.x-k8s.io/v1beta1"
	podTemplateKind  = "PodTemplate"
	podTemplatesAPI  = "v1"
	consumeKey       = "autoscaling.x-k8s.io/consume-provisioning-request"
	classKey         = "autoscaling.x-k8s.io/provisioning-class-name"
	parameterPrefix  = "provreq.kueue.x-k8s.io/"
	requestOfKey     = kubernetes.RequestKey // annotation of a PodTemplate
	templatePrefix   = "ppt"
	maxTemplateName  = 253
	requestLookAgain = pollAfter
	// requestMissed is when a watched request is looked at again in case a change was missed.
	requestMissed = 30 * time.Second
)

// requestAPI is the API server, for what nodes are asked for by.
type requestAPI interface {
	Labelled(ctx context.Context, apiVersion, kind, namespace string, of workload.ID) ([]kubernetes.Wrapped, error)
	Placeholders(ctx context.Context, namespace string, of workload.ID) ([]kubernetes.Placeholder, error)
}

// requestObject is a request for nodes or a PodTemplate of one, with its identity.
type requestObject struct {
	kubernetes.Wrapped
	id bundle.Identity
}

// requestObjects lists requests and PodTemplates, of a workload and its namespace or of all.
// A cluster that serves no requests has none.
func requestObjects(ctx context.Context, cluster requestAPI, namespace string, of workload.ID) (all []requestObject, err error) {
	list := func(version, kind string) error {
		found, err := cluster.Labelled(ctx, version, kind, namespace, of)
		for _, object := range found {
			id := bundle.Identity{APIVersion: version, Kind: kind, Namespace: object.Namespace, Name: object.Name}
			all = append(all, requestObject{object, id})
		}
		return err
	}
	err = list(requestVersion, requestKind)
	if kubernetes.IsUnknownKind(err) {
		err = list(requestBeta, requestKind)
	}
	if kubernetes.IsUnknownKind(err) {
		err = nil
	}
	return all, errors.Join(err, list(podTemplatesAPI, podTemplateKind))
}

// provision does the next step towards the request for nodes being there, and reports what
// became of it.
func (p *pass) provision(ctx context.Context) (time.Duration, error) {
	wanted := p.command.Provision
	if wanted == nil || wanted.Name == "" {
		return 0, fmt.Errorf("the command to request nodes names no request")
	}
	status := p.requestStatus()
	if status.State == event.RequestFailed || status.State == event.RequestGone {
		return 0, p.report(ctx)
	}
	if wanted.Class == workload.PlaceholderClass {
		return p.show(ctx)
	}
	found, err := p.findRequest(ctx, wanted.Name)
	switch {
	case err != nil:
		return 0, err
	case found == nil && status.Created:
		status.State, status.Message = event.RequestGone, "it was deleted, not by Muster"
		return 0, p.report(ctx)
	case found == nil:
		return p.createRequest(ctx)
	case found.Workload != p.command.Workload:
		status.State, status.Message = event.RequestFailed, "an object of that name "+errForeign.Error()
		return 0, p.report(ctx)
	case found.Deleting: // however long a finalizer keeps it
		status.State, status.Message = event.RequestGone, "it is being deleted, not by Muster"
		return 0, p.report(ctx)
	}
	status.Created = true
	status.State, status.Message = stateOfRequest(found.Content)
	status.NodeSelector = nil
	if status.State == event.RequestProvisioned {
		status.NodeSelector = nodeSelectorOf(found.Content, wanted.NodeLabels)
	}
	return p.requestAgain(), p.report(ctx)
}

// requestAgain is when a request that is there is looked at again if it does not change.
func (p *pass) requestAgain() time.Duration {
	if p.cache.WatchesRequests() {
		return requestMissed
	}
	return requestLookAgain
}

// requestStatus is what the pass reports of the request.
func (p *pass) requestStatus() *event.ProvisionStatus {
	status := event.ProvisionStatus{Name: p.command.Provision.Name, State: event.RequestPending}
	if last := p.status.Provision; last != nil && last.Name == status.Name {
		status = *last // what was reported is shared
	}
	p.status.Provision = &status
	return &status
}

// findRequest reads a request, uncached; nil when there is none.
func (p *pass) findRequest(ctx context.Context, name string) (*kubernetes.Wrapped, error) {
	for _, version := range []string{requestVersion, requestBeta} {
		found, err := p.cluster.GetItem(ctx, p.requestIdentity(version, name))
		if found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (p *pass) requestIdentity(version, name string) bundle.Identity {
	return bundle.Identity{APIVersion: version, Kind: requestKind, Namespace: p.command.Namespace, Name: name}
}

// stateOfRequest reads the conditions of a request. What ends it comes first.
func stateOfRequest(object map[string]any) (state, message string) {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	is := map[string]string{}
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		kind, _ := c["type"].(string)
		text, _ := c["message"].(string)
		if c["status"] == "True" {
			is[kind] = text
		}
		if kind == event.RequestProvisioned && c["status"] != "True" {
			message = text // how far it is
		}
	}
	for _, state := range []string{event.RequestFailed, event.RequestRevoked, event.RequestExpired, event.RequestProvisioned} {
		if text, holds := is[state]; holds {
			return state, text
		}
	}
	if _, accepted := is[event.RequestAccepted]; accepted {
		return event.RequestAccepted, message
	}
	return event.RequestPending, message
}

// nodeSelectorOf reads the values of labels from the provisioningClassDetails of a request. As in
// Kueue, a label without one is left out; so is one whose value no label has.
func nodeSelectorOf(object map[string]any, details map[string]string) map[string]string {
	status, _ := object["status"].(map[string]any)
	values, _ := status["provisioningClassDetails"].(map[string]any)
	var selector map[string]string
	for label, detail := range details {
		value, is := values[detail].(string)
		if !is || len(validation.IsValidLabelValue(value)) > 0 {
			continue
		}
		if selector == nil {
			selector = map[string]string{}
		}
		selector[label] = value
	}
	return selector
}

// removeRequests deletes the requests of the workload and their PodTemplates, but for the
// request that is wanted.
func (p *pass) removeRequests(ctx context.Context, wanted string) error {
	found, err := requestObjects(ctx, p.cluster, p.command.Namespace, p.command.Workload)
	faults := []error{err, p.removePlaceholders(ctx, wanted)}
	for _, object := range found {
		if object.Deleting || nameOfRequest(object.Wrapped) == wanted && wanted != "" {
			continue
		}
		_, err := p.cluster.DeleteItem(ctx, object.id, object.UID)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// nameOfRequest is the request that an object is of, or is.
func nameOfRequest(object kubernetes.Wrapped) string {
	if object.Kind == requestKind {
		return object.Name
	}
	metadata, _ := object.Content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	name, _ := annotations[requestOfKey].(string)
	return name
}
