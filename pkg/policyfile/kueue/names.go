package kueue

import (
	"fmt"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/fault"
)

// BadNames returns a fault for each name in the object that Kubernetes, where Kueue's
// objects are, would refuse. Parse accepts them: what was applied stays readable.
func (o Object) BadNames() fault.List {
	var faults fault.List
	check := func(path, name string) {
		if why := kube.BadName("", name); name != "" && why != "" {
			faults = append(faults, fault.Fault{Path: o.called() + ": " + path, Text: fmt.Sprintf("%q: %s", fault.Clip(name), why)})
		}
	}
	check("metadata.name", o.Name)
	check("metadata.namespace", o.Namespace)
	for _, q := range o.Says.ClusterQueues {
		check("spec.cohortName", q.Cohort)
	}
	for _, c := range o.Says.Cohorts {
		check("spec.parentName", c.Parent)
	}
	return faults
}
