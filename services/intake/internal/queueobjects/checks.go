package queueobjects

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// RequestAPI is what the API server serves by which nodes are asked for.
type RequestAPI interface {
	ServesRequests(ctx context.Context) (bool, error)
}

const (
	checkActive        = "Active"
	checkActiveMessage = "The admission check is active"
	checkUnserved      = "NotServed"
	unservedMessage    = "the API server of this cluster serves no ProvisioningRequests (autoscaling.x-k8s.io, v1 or v1beta1), so no nodes are asked for here; install their definition, and an autoscaler that answers them"
)

// asksForNodes reports whether an object is an AdmissionCheck that Muster answers itself. The
// status of another one is its controller's.
func asksForNodes(object *unstructured.Unstructured) bool {
	controller, _, _ := unstructured.NestedString(object.Object, "spec", "controllerName") // no text is refused
	return object.GetKind() == "AdmissionCheck" && controller == quota.ProvisioningController
}

// unserved reports whether the cluster has a check that asks for nodes, and does not serve what
// it asks for them by.
func (s *Sync) unserved(ctx context.Context, objects []*unstructured.Unstructured) (bool, error) {
	for _, object := range objects {
		if asksForNodes(object) {
			served, err := s.Requests.ServesRequests(ctx)
			return err == nil && !served, err
		}
	}
	return false, nil
}

// ofCheck is the verdict of an AdmissionCheck that asks for nodes.
func (v view) ofCheck(object *unstructured.Unstructured) verdict {
	switch refused := v.refused[keyOf(object)]; {
	case isDeleted(object):
		return verdict{"Terminating", "is being deleted"}
	case refused != "":
		return verdict{"Refused", refused}
	}
	if why := v.answer.InactiveChecks[object.GetName()]; why != "" {
		return verdict{"BadConfig", why}
	}
	if v.unserved && v.needsRequests(object) {
		return verdict{checkUnserved, unservedMessage}
	}
	return verdict{checkActive, checkActiveMessage}
}

// needsRequests reports whether a check asks by ProvisioningRequests. That is not known of one
// whose configuration is no object of this cluster.
func (v view) needsRequests(check *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(check.Object, "spec", "parameters", "name")
	for _, object := range v.objects {
		if object.GetKind() == "ProvisioningRequestConfig" && object.GetName() == name {
			class, _, _ := unstructured.NestedString(object.Object, "spec", "provisioningClassName")
			return class != workload.PlaceholderClass
		}
	}
	return false
}

// unservedChecks names the checks of a ClusterQueue for which this cluster does not serve what
// they ask by. The queue is in use: what fits on nodes that exist is admitted, and other clusters
// may be asked.
func (v view) unservedChecks(queue *unstructured.Unstructured) string {
	var names []string
	for _, check := range v.nodeChecksOf(queue) {
		if len(names) < mostParts && v.ofCheck(check).reason == checkUnserved {
			names = append(names, fmt.Sprintf("%q", check.GetName()))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("; AdmissionCheck %s is not active: %s", names[0], unservedMessage)
	}
	return fmt.Sprintf("; AdmissionChecks %s are not active: %s", strings.Join(names, ", "), unservedMessage)
}

// nodeChecksOf returns the checks of a ClusterQueue that ask for nodes.
func (v view) nodeChecksOf(queue *unstructured.Unstructured) (checks []*unstructured.Unstructured) {
	for _, key := range partsOf(queue) {
		for _, object := range v.objects {
			if keyOf(object) == key && asksForNodes(object) {
				checks = append(checks, object)
			}
		}
	}
	return checks
}

// concernsNodes reports whether the status of an object depends on what the API server serves.
func (v view) concernsNodes(object *unstructured.Unstructured) bool {
	return asksForNodes(object) || len(v.nodeChecksOf(object)) > 0
}
