package event

import "muster.dev/muster/pkg/spec/workload"

// ProvisionCommand is a ProvisioningRequest that is to exist.
type ProvisionCommand struct {
	// Name of the object, with the number of the request in it.
	Name   string `json:"name"`
	Number int    `json:"number"`
	// Class is the provisioningClassName, Parameters are its parameters.
	Class      string            `json:"class"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Merge is the podSetMergePolicy: which pod sets share a PodTemplate.
	Merge string `json:"merge,omitempty"`
	// NodeLabels (podSetUpdates) has the detail of the request that is the value of each label by
	// which its pods choose their nodes.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// Pods are those that lack a place.
	Pods []workload.PodCount `json:"pods"`
}

// States of a request for nodes.
const (
	RequestPending     = "Pending"         // no answer yet
	RequestAccepted    = "Accepted"        // an autoscaler works on it
	RequestProvisioned = "Provisioned"     // the nodes are reported to be there
	RequestFailed      = "Failed"          // there will be none
	RequestExpired     = "BookingExpired"  // the nodes are not kept any more
	RequestRevoked     = "CapacityRevoked" // the nodes were removed
	RequestGone        = "Deleted"         // another party deleted the request
)

// ProvisionStatus is what became of a ProvisioningRequest.
type ProvisionStatus struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"` // of the condition
	// Created: the request was seen in the API server.
	Created bool `json:"created,omitempty"`
	// NodeSelector has the values of the labels of the command's NodeLabels, once the nodes are
	// there.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}
