package kueue

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// FaultsIfNew returns what Kubernetes, where Kueue's objects are, would refuse in the object:
// names, and fields that its version does not have. Parse accepts both: what was applied
// stays readable.
func (o Object) FaultsIfNew() fault.List {
	faults := slices.Clone(o.former)
	check := func(path, name string) {
		if why := kube.BadName("", name); name != "" && why != "" {
			faults = append(faults, fault.Fault{Path: o.called() + ": " + path, Text: fmt.Sprintf("%q: %s", fault.Clip(name), why)})
		}
	}
	check("metadata.name", o.Name)
	check("metadata.namespace", o.Namespace)
	for _, q := range o.Policy.ClusterQueues {
		check("spec.cohortName", q.Cohort)
	}
	for _, c := range o.Policy.Cohorts {
		check("spec.parentName", c.Parent)
	}
	return faults
}
