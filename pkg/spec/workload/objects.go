package workload

import (
	"regexp"
	"slices"

	"muster.dev/muster/pkg/spec/fault"
)

// DefaultKinds in a list of kinds stands for those that are allowed without a list.
const DefaultKinds = "default"

// AllKinds in a list allows every kind but those that are never allowed.
const AllKinds = "*"

// ObjectPolicy is which objects Muster creates for a queue's workloads; package
// objectpolicy checks manifests against it. The zero value allows what gives a
// submitter no right beyond his pods.
type ObjectPolicy struct {
	// Kinds that may be wrapped, as Kind.group, such as Job.batch, or the kind alone
	// for the core group. DefaultKinds and AllKinds may be among them. Empty is
	// DefaultKinds.
	Kinds []string `json:"kinds,omitempty"`
	// ServiceTypes that services may have other than ClusterIP.
	ServiceTypes []string `json:"serviceTypes,omitempty"`
	// ExternalIPs allows services to have external addresses.
	ExternalIPs bool `json:"externalIPs,omitempty"`
}

// kindPattern is Kind or Kind.group.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}(\.[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$`)

// Validate returns what of the policy cannot be, as a fault.List.
func (p ObjectPolicy) Validate() error {
	var faults fault.List
	for i, kind := range p.Kinds {
		if kind != DefaultKinds && kind != AllKinds && !kindPattern.MatchString(kind) {
			faults.Add(fault.Index("kinds", i), "%q: want Kind.group, such as Job.batch or ConfigMap, or %s, or %q", kind, DefaultKinds, AllKinds)
		}
	}
	types := []string{"NodePort", "LoadBalancer", "ExternalName"}
	for i, t := range p.ServiceTypes {
		if !slices.Contains(types, t) {
			faults.Add(fault.Index("serviceTypes", i), "%q: want NodePort, LoadBalancer or ExternalName", t)
		}
	}
	return faults.Err()
}
